"""lstm on any core: one kernel for all steps; the four gates of a unit are summed
together.

The weights of a unit's gates lie side by side, so that each value read meets four.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    INT16,
    INT32,
    INT64,
    Expr,
    Intrin,
    Var,
    cast,
    const,
    i32,
    load,
    maximum,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, whole
from pybuild.kernels.base.node_rows import NodeRows
from pybuild.kernels.base.operands import short
from pybuild.kernels.epilogues.int16 import WIDE
from pybuild.kernels.epilogues.requantise import CLAMP, DOUBLE
from pybuild.kernels.layers.weights import constant
from pybuild.kernels.math.curves16 import LOGISTIC16, tanh16
from pybuild.kernels.math.exponential import LOGISTIC, TANH
from pybuild.kernels.portable.act16 import STEPS, curve_points, interpolated
from pybuild.ops.fixed_point.quant import accumulator_bound
from pybuild.ops.recurrent import (
    ACTIVATIONS,
    BIAS,
    CELL_GATE,
    GATES,
    SIGMOID,
    C,
    H,
    LstmParameters,
    Pair,
    R,
    W,
    X,
    activation,
    lstm_parameters,
    macs,
    sizes,
)
from pybuild.records import dataclass

_NAMES = ("input", "forget", "cell", "output")
_LEAST, _MOST = INT16.low, INT16.high
# instructions of a step of a unit besides its sums
_COST = {True: 500, False: 150}

_N, _SHIFT = Var("n", INT32), Var("shift", INT32)
_AWAY = Intrin(
    "crt_shift_away",
    (_N, _SHIFT),
    (_N + (const(1) << (_SHIFT - 1)) + (_N >> 31)) >> _SHIFT,
    doc="n / 2^shift, shift from 1, rounded to nearest, ties away from zero.",
)

_GATED = "units, inputs, the four gates side by side"


@dataclass(frozen=True)
class _Form:
    """How the numbers of a cell are computed.

    gate   from the two sums of gate number g
    next   the new cell state, from the gates input, forget, cell, and the old one
    made   the output, from the gate output and the new cell state
    """

    gate: Callable[[int, Expr, Expr], Expr]
    next: Callable[[Expr, Expr, Expr, Expr], Expr]
    made: Callable[[Expr, Expr], Expr]


@dataclass(frozen=True)
class Gates:
    """What four gates make of the input, or of the state: weights as they are packed,
    what their sums begin with, and how many values there are."""

    weights: Var
    bias: Var | None
    inputs: Expr


class Lstm:
    """The pieces of the kernel being written.

    ending    of its name
    per_mac   estimated instructions of a product
    per_cell  the same of a cell; 0: what they take one by one
    order     how the weights lie, for readers of the C
    """

    ending, per_mac, per_cell = "", 2.0, 0
    order = "the four gates' weights lie side by side and are read forward"
    logistic, tanh = LOGISTIC16, staticmethod(tanh16)
    gates: dict[int, Gates]
    form: _Form

    def __init__(self, node: Node, graph: Graph) -> None:
        self.node, self.graph = node, graph
        self.kind = graph.tensor(node.output).dtype
        self.is_float = self.kind is FLOAT32
        self.total = {FLOAT32: FLOAT32, INT16: INT64}.get(self.kind, INT32)
        self.per_unit = self.per_cell or _COST[self.is_float]
        self.made = None if self.is_float else lstm_parameters(node, graph)
        name, ending = f"lstm_{short(self.kind)}", activation(node)
        name += f"_{ending}" if ending != "tanh" else ""
        if self.made is not None and self.made.tables and not self.made.wide:
            name += "_tables"
        doc = told(
            f"lstm, {self.kind.value}: four gates of each unit, then its cell state "
            "and output",
            f"image by image, step by step, unit by unit; {self.order}",
        )
        self.k = Builder(name + self.ending, doc)
        self.rows = NodeRows(self.k, node, graph, W)

    def written(self) -> Candidate:
        node, graph, k = self.node, self.graph, self.k
        steps, batch, width, units = sizes(node, graph)
        major = bool(node.attrs["time_major"])
        y = k.row("y", 0, self.kind, writable=True)
        inside = FLOAT32 if self.is_float else INT16
        cells = k.row("cells", 1, inside, writable=True)
        x, h, c = (self.rows.source(i, name) for i, name in enumerate("xhc"))
        packed = {W: self.weights(W, "w"), R: self.weights(R, "r")}
        bias = {W: self._bias(W, W), R: self._bias(R, -1)}
        self.begin()
        count, many = k.arg("steps", steps), k.arg("units", units)
        inputs = {W: k.arg("width", width), R: many}
        self.gates = {f: Gates(packed[f], bias[f], inputs[f]) for f in (W, R)}
        x_step = k.arg("x_step", batch * width if major else width)
        y_step = k.arg("y_step", batch * units if major else units)
        x_image = k.arg("x_image", width if major else steps * width)
        y_image = k.arg("y_image", units if major else steps * units)
        with k.loop("b", k.arg("batch", batch)) as b:
            cell = k.let("cell", offset(cells, b * many))
            old = k.let("old", offset(c, b * many))
            before = k.let("before", offset(h, b * many))
            with k.loop("j", many) as j:
                k.store(cell, j, load(old, j))
            with k.loop("step", count) as step:
                now = k.let("now", offset(x, b * x_image + step * x_step))
                to = k.let("to", offset(y, b * y_image + step * y_step))
                self.every(many, now, before, cell, to)
                k.assign(before, to)
        return Candidate(
            func=k.finish(in_place=True, ordered=True),
            args=tuple(k.values),
            outputs=tuple(whole(graph.tensor(n)) for n in node.outputs),
            inputs=tuple(whole(graph.tensor(n)) for n in self.rows.computed),
            constants=tuple(self.rows.tables),
            also_in_place=((1, C),),
            cost=round(self.per_mac * macs(node, graph))
            + steps * batch * units * self.per_unit,
        )

    def begin(self) -> None:
        """Binds what the cells need."""
        self.form = self._float() if self.is_float else self._whole()

    def every(self, many: Expr, now: Expr, before: Expr, cell: Expr, to: Expr) -> None:
        """All units of a step."""
        with self.k.loop("j", many) as j:
            self.one(j, self.sums(W, now, j), self.sums(R, before, j), cell, to)

    def one(
        self, j: Expr, seen: Sequence[Expr], known: Sequence[Expr], cell: Expr, to: Expr
    ) -> None:
        """A unit, of which the sums are known."""
        k, form = self.k, self.form
        gates = [
            k.let(_NAMES[g], form.gate(g, seen[g], known[g])) for g in range(GATES)
        ]
        state = k.let("state", form.next(gates[0], gates[1], gates[2], load(cell, j)))
        k.store(cell, j, cast(state, FLOAT32 if self.is_float else INT16))
        k.store(to, j, cast(form.made(gates[3], state), self.kind))

    # ---- pointers ---------------------------------------------------------------

    def four(self, first: int) -> list[Array]:
        """Of the gates."""
        return [constant(self.node, self.graph, first + g) for g in range(GATES)]

    def weights(self, first: int, role: str) -> Var:
        """[units][inputs][gates]"""
        return self.rows.table(role, np.stack(self.four(first), -1), _GATED)

    def _bias(self, first: int, bias: int) -> Var | None:
        """[units][gates], with what the zero point makes of the weights."""
        four = self.four(first)
        made = np.zeros((len(four[0]), GATES), self.total.numpy)
        if bias >= 0:
            made = made + np.stack(self.four(BIAS), -1)
        if self.made is not None:
            zero = self.made.x_zero if first == W else self.made.h_zero
            sums = np.stack([w.astype(np.int64).sum(1) for w in four], -1)
            made = made - zero * sums
        elif bias < 0:
            return None
        role = "bias" if bias >= 0 else "known_bias"
        return self.bias_table(role, made.astype(self.total.numpy))

    def bias_table(self, role: str, made: Array) -> Var:
        return self.rows.table(role, made, _GATED)

    # ---- sums -------------------------------------------------------------------

    def sums(self, first: int, source: Expr, unit: Expr) -> Sequence[Expr]:
        """Of the four gates of a unit."""
        k, total = self.k, self.total
        gates = self.gates[first]
        sums = []
        for g in range(GATES):
            begun: Expr = const(0, total)
            if gates.bias is not None:
                begun = load(gates.bias, unit * GATES + g)
            sums.append(k.let("sum", begun))
        row = k.let("row", offset(gates.weights, unit * gates.inputs * GATES))
        kind = FLOAT32 if self.is_float else INT32
        with k.loop("i", gates.inputs) as i:
            value = k.let("value", cast(load(source, i), kind))
            for g, each in enumerate(sums):
                product = value * cast(load(row, i * GATES + g), kind)
                k.assign(each, each + cast(product, total))
        return sums

    # ---- float ------------------------------------------------------------------

    def _float(self) -> _Form:
        limit = float(self.node.attrs["cell_clip"])
        clip = None
        if limit > 0:
            clip = self.k.let(
                "clip", load(self.rows.table("limit", np.asarray([limit], np.float32)))
            )

        def gate(g: int, seen: Expr, known: Expr) -> Expr:
            return self._active(seen + known) if g == CELL_GATE else LOGISTIC(
                seen + known)  # fmt: skip

        def following(i: Expr, f: Expr, g: Expr, c: Expr) -> Expr:
            made = f * c + i * g
            if clip is None:
                return made
            return minimum(maximum(made, const(0.0, FLOAT32) - clip), clip)

        return _Form(gate, following, lambda o, c: o * self._active(c))

    def _active(self, value: Expr) -> Expr:
        name = activation(self.node)
        if name == "tanh":
            return TANH(value)
        for limit, hold in zip(ACTIVATIONS[name], (maximum, minimum), strict=True):
            if math.isfinite(limit):
                value = hold(value, const(float(limit), FLOAT32))
        return value

    # ---- integers ---------------------------------------------------------------

    def _whole(self) -> _Form:
        k, made, held = self.k, self.made, self.held
        assert made is not None
        points = None
        if made.tables:
            points = self.rows.table("points", curve_points().array)
        ends = {
            name: [
                self._of_sums(f"{name}_{_NAMES[g]}", first + g, pairs[g])
                for g in range(GATES)
            ]
            for name, first, pairs in (("seen", W, made.seen), ("known", R, made.known))
        }
        curves = _Curves(k, made, points, self.logistic, self.tanh)
        bits = k.arg("bits", made.bits)
        kept, added, hidden = (
            self.scaler(name, pair, -_LEAST * _MOST)
            for name, pair in (
                ("kept", made.kept), ("added", made.added), ("hidden", made.hidden)
            )
        )  # fmt: skip
        zero, clip = k.arg("zero", made.zero), None
        if made.clip > 0:
            clip = k.arg("clip", made.clip)

        def gate(g: int, seen: Expr, known: Expr) -> Expr:
            a, b = ends["seen"][g](seen), ends["known"][g](known)
            both = held(held(a) + (held(b) if made.tables else b))
            both = k.let("both", both)
            return curves.tanh(both, 3) if g == CELL_GATE else curves.logistic(
                both)  # fmt: skip

        def following(i: Expr, f: Expr, g: Expr, c: Expr) -> Expr:
            if made.tables:
                before, change = k.let("before", f * i32(c)), k.let("change", i * g)
                state = held(held(kept(before)) + held(added(change)))
            else:
                state = held(_AWAY(f * i32(c), 15) + _AWAY(i * g, bits + 15))
            return state if clip is None else CLAMP(state, const(0) - clip, clip)

        def output(o: Expr, c: Expr) -> Expr:
            product = k.let("product", o * curves.tanh(c, made.bits))
            return self.made_of(hidden(product) + zero)

        return _Form(gate, following, output)

    def _of_sums(self, name: str, index: int, pair: Pair) -> Callable[[Expr], Expr]:
        """From a sum of the weights of input `index` to Q3.12."""
        if self.total is not INT64:
            return self.scaler(name, pair, self._reach(index))
        by = self.k.arg(f"{name}_by", pair[0])
        right = self.k.arg(f"{name}_right", min(15 - pair[1], 62))
        return lambda total: WIDE(total, by, right)

    def _reach(self, index: int) -> int:
        """The greatest absolute sum of these weights."""
        source = self.graph.tensor(self.node.inputs[X if index < R else H])
        bias = None
        if index < R:
            bias = constant(self.node, self.graph, BIAS + index - W)
        weights = constant(self.node, self.graph, index)
        low, high = accumulator_bound(weights, bias, source.zero_point, source.dtype)
        return int(np.maximum(-low, high).max(initial=0))

    def scaler(self, name: str, pair: Pair, reach: int) -> Callable[[Expr], Expr]:
        """Scales a number of 32 bits that is at most `reach`, rounded twice."""
        k, (multiplier, shift) = self.k, pair
        by = k.arg(f"{name}_by", multiplier)
        right = k.arg(f"{name}_right", min(max(-shift, 0), 30))
        if shift <= 0:
            return lambda total: DOUBLE(total, by, right)
        left = k.arg(f"{name}_left", 1 << shift)
        return lambda total: DOUBLE(total * left, by, right)

    def held(self, value: Expr) -> Expr:
        """Within int16."""
        return CLAMP(value, _LEAST, _MOST)

    def made_of(self, value: Expr) -> Expr:
        """Within the type of the output."""
        return CLAMP(value, self.kind.low, self.kind.high)


@dataclass(frozen=True)
class _Curves:
    """logistic and tanh of int16: between `points` of a table, or by steps."""

    k: Builder
    made: LstmParameters
    points: Expr | None
    by_steps: Intrin
    tanh_of: Callable[[int], Intrin]

    def logistic(self, x: Expr) -> Expr:
        if self.points is None:
            return self.by_steps(x)
        d = self.k.let("d", x * SIGMOID.multiplier)
        inside = -_LEAST * SIGMOID.multiplier < 255 << SIGMOID.bits
        return interpolated(self.k, self.points, d, SIGMOID, inside)

    def tanh(self, x: Expr, bits: int) -> Expr:
        if self.points is None:
            return self.tanh_of(bits)(x)
        before = self.made.tanh(bits)
        d = x * before.multiplier
        if before.shift:
            d = STEPS(x, before.multiplier, before.shift)
        return interpolated(self.k, self.points, self.k.let("d", d), before)
