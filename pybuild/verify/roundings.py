"""Decides whether a build differs from the standard by roundings of float32 alone.

Each layer is computed in float64 from what the build's own layers gave it. So no
difference is carried on, and each that is left must be within what float32 resolves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph
from pybuild.records import dataclass
from pybuild.verify.compare import FLOAT_TOLERANCE, layer_of
from pybuild.verify.layout import as_given, as_theirs, channels_last, flattened
from pybuild.verify.standard import evaluator, wide

Reals = np.ndarray[Any, np.dtype[np.float64]]

# how often a layer is computed from inputs that are moved by a rounding each
TRIES = 8
_ULP = 2.0**-23
# of the mean square deviation of these, what a build may be away: sums round once a
# term, moved inputs count once each
REACH = 8.0
# operators that sum many reals with one rounding each, as the interpreter has them
# -> the first axis of what is summed
_SUMS = {
    "InstanceNormalization": 2, "GlobalAveragePool": 2, "LayerNormalization": -1,
    "ReduceMean": 1, "ReduceSum": 1,
}  # fmt: skip
# inputs of these that are positions or sizes, not values, are left as they are
_VALUES = {"Resize": 1, "Upsample": 1, "Pad": 1, "Clip": 1, "Slice": 1, "Tile": 1}


@dataclass(frozen=True)
class Roundings:
    """The rest of the differences, layer by layer.

    ties      integers one step off whose real value lies at the middle of two
    furthest  the greatest distance from that middle, in steps
    resolved  what float32 resolves there, in steps
    floats    real values further off than the tolerance, within what float32 resolves
    wrong     the first layer that differs by more; "": none
    """

    ties: int = 0
    furthest: float = 0.0
    resolved: float = 0.0
    floats: int = 0
    wrong: str = ""
    judged: frozenset[str] = field(default=frozenset())

    def __add__(self, other: Roundings) -> Roundings:
        first = max(self, other, key=lambda one: (one.furthest, one.resolved))
        return Roundings(
            self.ties + other.ties, first.furthest, first.resolved,
            self.floats + other.floats, self.wrong or other.wrong,
            self.judged | other.judged,
        )  # fmt: skip

    def __str__(self) -> str:
        said = []
        if self.ties:
            said.append(
                f"{self.ties} integers of all layers are at ties: their real values "
                f"are at most {self.furthest:.1g} steps beyond the middle of two, "
                f"where float32 resolves {self.resolved:.1g}"
            )
        if self.floats:
            said.append(
                f"{self.floats} floats are further off than {FLOAT_TOLERANCE:g} of "
                "the range, but no further than roundings of float32 in what their "
                "layer reads move them"
            )
        nothing = f"no layer is off by more than {FLOAT_TOLERANCE:g} of its range"
        return "; ".join(said) or nothing


def roundings(
    path: Path, graph: Graph, inputs: Mapping[str, Array], have: Mapping[str, Array]
) -> Roundings | None:
    """The tensors of one run `have` that differ only by rounding.

    None    of a stream, or where the interpreter has not one of the operators
    Source  random roundings: D. Parker, Monte Carlo arithmetic, 1997
    """
    if graph.windows or graph.bounded:
        return None
    walk = _Walk(path, graph, have)
    try:
        with np.errstate(all="ignore"):
            return walk.all(inputs)
    except Exception:  # the interpreter has classes of its own
        return None


class _Walk:
    """The file's nodes one by one: worlds[0] as they are, the others moved."""

    def __init__(self, path: Path, graph: Graph, have: Mapping[str, Array]) -> None:
        self.net, self.graph, self.have = evaluator(path), graph, have
        self.last = channels_last(graph)
        self.lost = flattened(graph, self.last)
        self.chance = np.random.default_rng(0)
        self.fixed = set(self.net.rt_inits_)

    def all(self, inputs: Mapping[str, Array]) -> Roundings:
        begun = {name: state.begun for name, state in self.graph.state.items()}
        first: dict[str, Any] = {"": None, **self.net.rt_inits_}
        for name, value in {**begun, **inputs}.items():
            first[name] = wide(as_given(value, self.graph, name, self.last))
        worlds = [dict(first) for _ in range(TRIES + 1)]
        found = Roundings()
        for node in self.net.rt_nodes_:
            self._step(node, worlds)
            for name in node.output:
                found += self._judged(node, name, worlds)
        wanted = {n for n in self.graph.outputs if n not in self.fixed}
        missing = sorted(wanted - found.judged)
        return found + Roundings(wrong=missing[0] if missing else "")

    def _step(self, node: Any, worlds: Sequence[dict[str, Any]]) -> None:
        constant = all(name in self.fixed or not name for name in node.input)
        shared: Any = None
        for index, world in enumerate(worlds):
            if constant and index:
                made = shared
            else:
                given = [world[name] for name in node.input]
                if index:
                    given = self._moved(node, given)
                context = {"context": world} if node.need_context() else {}
                made = shared = node.run(*given, **context)
            world.update(zip(node.output, made, strict=False))
        if constant and not node.need_context():
            self.fixed.update(node.output)

    def _moved(self, node: Any, given: Sequence[Any]) -> list[Any]:
        """Each real value by up to a unit in the last place of float32; what is summed
        by that of a partial sum, which grows with the root of their number.
        """
        count = _VALUES.get(node.op_type, len(given))
        ulp = _ULP
        if node.op_type in _SUMS:
            summed = given[0].shape[_SUMS[node.op_type] :]
            ulp *= float(np.sqrt(max(np.prod(summed), 1)))
        moved = list(given)
        for index, (name, value) in enumerate(zip(node.input, given, strict=True)):
            real = isinstance(value, np.ndarray) and value.dtype == np.float64
            if index < count and real and name not in self.fixed:
                by = self.chance.uniform(-ulp, ulp, value.shape)
                moved[index] = np.asarray(value * (1 + by))
        return moved

    def _judged(
        self, node: Any, name: str, worlds: Sequence[dict[str, Any]]
    ) -> Roundings:
        """A tensor that the build has, too; its value goes on in all worlds."""
        want = worlds[0].get(name)
        if name not in self.have or name in self.fixed:
            return Roundings()
        if not isinstance(want, np.ndarray) or name not in self.graph.tensors:
            return Roundings()
        failed = Roundings()
        for ours in self._arranged(name, want):
            found = self._one(node, name, ours, worlds)
            if not found.wrong:
                for world in worlds:
                    world[name] = wide(ours)
                return found + Roundings(judged=frozenset((name,)))
            failed = failed + found
        return Roundings() if name in self.lost else failed

    def _arranged(self, name: str, want: Array) -> list[Array]:
        """Ours in the order that the file has it: as it is known; of what is between
        layers, whose order is not always known, in the other one, too.
        """
        last = self.last
        orders = [last]
        if name not in self.graph.outputs and want.ndim >= 3:
            orders.append(last ^ {name})
        value = self.have[name]
        found = [as_theirs(value, self.graph, name, order, want) for order in orders]
        return [v for v in found if v is not None and v.dtype.kind == want.dtype.kind]

    def _one(
        self, node: Any, name: str, ours: Array, worlds: Sequence[dict[str, Any]]
    ) -> Roundings:
        if ours.dtype.kind == "f":
            return self._floats(name, ours, worlds)
        if node.op_type == "QuantizeLinear":
            return self._integers(node, ours, worlds)
        same = np.logical_or.reduce([world[name] == ours for world in worlds])
        return Roundings(wrong="" if same.all() else layer_of(self.graph, name))

    def _floats(
        self, name: str, ours: Array, worlds: Sequence[dict[str, Any]]
    ) -> Roundings:
        want = worlds[0][name]
        finite = want[np.isfinite(want)]
        span = float(np.ptp(finite)) if finite.size else 0.0
        span = span or float(np.abs(finite).max(initial=1e-30))
        same = (ours == want) | (np.isnan(ours) & np.isnan(want))
        away = np.where(same, 0.0, np.abs(ours.astype(np.float64) - want))
        off = ~(away <= FLOAT_TOLERANCE * span)
        room = REACH * _spread(want, [world[name] for world in worlds[1:]])
        if (off & ~(away <= room)).any():
            return Roundings(wrong=layer_of(self.graph, name))
        return Roundings(floats=int(off.sum()))

    def _integers(
        self, node: Any, ours: Array, worlds: Sequence[dict[str, Any]]
    ) -> Roundings:
        """The differences of a QuantizeLinear: how far the real value is from the
        middle of two integers."""
        name = node.output[0]
        want = worlds[0][name]
        off = ours != want
        if not off.any():
            return Roundings()
        axis = getattr(node, "axis", 1)
        reals = [_real(world, node, axis, want) for world in worlds]
        zero = [worlds[0][n] for n in node.input[2:] if n] or [np.zeros(())]
        most = np.abs(reals[0]) + np.abs(zero[0].astype(np.float64)).max()
        room = REACH * _spread(reals[0], reals[1:], most)[off]
        beyond = np.abs(reals[0] - ours.astype(np.float64))[off] - 0.5
        if not (beyond <= room).all():
            return Roundings(wrong=layer_of(self.graph, name))
        at = int(beyond.argmax())
        return Roundings(int(off.sum()), max(float(beyond[at]), 0.0), float(room[at]))


def _spread(true: Reals, moved: Sequence[Reals], most: Any = 0.0) -> Reals:
    """The mean square deviation of each element; at least a rounding of it, or of what
    is as large as `most` on the way to it.
    """
    square = np.mean([(one - true) ** 2 for one in moved], axis=0)
    least = np.maximum(np.abs(true), most) * _ULP / 2
    found: Reals = np.maximum(np.sqrt(square), least)
    return found


def _real(world: Mapping[str, Any], node: Any, axis: int, whole: Array) -> Reals:
    """The real numbers that QuantizeLinear rounds, within the type, in steps of the
    integer."""
    x, scale, *zero = [world[name] for name in node.input if name]
    row = [1] * x.ndim
    if scale.size > 1:
        row[axis] = scale.size
    steps = x.astype(np.float64) / scale.astype(np.float64).reshape(row)
    if zero:
        steps = steps + zero[0].astype(np.float64).reshape(row)
    kind: Any = whole.dtype
    span = np.iinfo(kind)
    found: Reals = np.clip(steps, span.min, span.max)
    return found
