"""One sample of wide float inputs, both signs and many magnitudes at once, and how far
from a reference a right model may be on it.

What a layer is wrong for far from -1..1 shows here: a range that is not reduced, an
exponential that overflows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from pybuild.records import dataclass
from pybuild.verify.compare import Judge, Limits, Values, ranges
from pybuild.verify.rooms import rooms
from pybuild.verify.samples import Sample, is_wide, sample

# powers of 10, the greatest first in which no value of the model or sum overflows
_POWERS = (30, 20, 12, 6, 4, 3, 2, 1)
_POWERS16 = (4, 3, 2, 1)
# how many float32 as great as any of the sample a kernel may add up: a sum that is
# finite in float64, as a mean is computed in numpy, need not be in float32
_SUMMED = 2.0**20


@dataclass(frozen=True)
class Wide:
    """names  the inputs that are wide; least, most: their magnitudes"""

    sample: Sample
    names: tuple[str, ...]
    least: float
    most: float

    def __str__(self) -> str:
        few = ", ".join(self.names[:4]) + ", ..." * (len(self.names) > 4)
        span = f"magnitudes {self.least:g} to {self.most:g}"
        return f"{few} of both signs, {span}"

    def to_json(self) -> dict[str, object]:
        return {"inputs": list(self.names), "least": self.least, "most": self.most}


def wide_sample(graph: Graph, seed: int = 0) -> Wide | None:
    """The widest sample on which all values, and sums of them, stay finite; None: no
    input is a plain float, or none is finite.
    """
    names = [n for n in graph.inputs if is_wide(graph, graph.tensor(n))]
    if not names or graph.bounded or graph.sampled:
        return None
    short = any(graph.tensor(n).dtype is DType.FLOAT16 for n in graph.tensors)
    for power in _POWERS16 if short else _POWERS:
        rng = np.random.default_rng((seed, power))
        given = dict(sample(graph, "uniform", (seed, power)).inputs)
        for name in names:
            given[name] = _drawn(rng, graph, name, power)
        with np.errstate(all="ignore"):
            found = interpret(graph, given)
        squared = [n.inputs[0] for n in graph.nodes if n.op == "group_norm"]
        fits = all(_has_room(found[n]) for n in _floats(graph))
        if fits and all(_has_room(found[n], 2) for n in squared):
            least = 10.0**-power
            return Wide(Sample("wide", given), tuple(names), least, 10.0**power)
    return None


def _has_room(value: Array, power: int = 1) -> bool:
    """True if sums of such numbers, or of their squares, are finite too; sums of
    float16 are float32."""
    if value.dtype == np.float16:
        return bool(np.isfinite(value).all())
    most = np.finfo(np.float32).max / _SUMMED
    return bool((np.abs(value.astype(np.float64)) ** power < most).all())


def _drawn(rng: np.random.Generator, graph: Graph, name: str, power: int) -> Array:
    tensor = graph.tensor(name)
    sizes = 10.0 ** rng.uniform(-power, power, tensor.shape)
    signs = np.where(rng.integers(0, 2, tensor.shape), 1.0, -1.0)
    return np.asarray(sizes * signs, tensor.dtype.numpy)


def _floats(graph: Graph) -> list[str]:
    made = [name for node in graph.nodes for name in node.outputs if name]
    return [name for name in made if graph.tensor(name).dtype.is_float]


def judges_of(
    graph: Graph, limits: Limits, wide: Wide, wanted: Values
) -> Iterator[Judge]:
    """By the ranges of this sample alone; and, dearer, where a rounding in one layer
    moves later ones further than that, as the sine of a sum does, so far.
    """
    judge = Judge(graph, limits, ranges(graph, [wanted]))
    yield judge
    if not graph.windows:
        yield replace(judge, rooms=rooms(graph, wide.sample.inputs, wanted))
