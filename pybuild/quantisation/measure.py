"""How far a quantised graph is from the float one, layer by layer and as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph
from pybuild.ops.base.operator import Numbers
from pybuild.ops.fixed_point.quant import quantized, real
from pybuild.quantisation.execute import Execution, like
from pybuild.quantisation.samples import Samples
from pybuild.records import dataclass


@dataclass(frozen=True)
class Power:
    """Sums of squares of what a tensor should be and of how far off it is."""

    signal: float = 0.0
    noise: float = 0.0

    def plus(self, want: Numbers, got: Numbers) -> Power:
        # where a mask is -inf on both sides there is neither
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.nan_to_num(got.astype(np.float64) - want, posinf=0, neginf=0)
            there = np.nan_to_num(want, posinf=0, neginf=0)
        signal = self.signal + float(np.square(there).sum())
        return Power(signal, self.noise + float(np.square(off).sum()))

    @property
    def share(self) -> float:
        """Root mean square of the error, of the signal's if there is any."""
        if self.noise == 0:
            return 0.0
        return math.sqrt(self.noise / (self.signal or 1.0))

    @property
    def decibels(self) -> float | None:
        """Signal-to-noise ratio; None without any noise."""
        if self.noise == 0:
            return None
        return 10 * math.log10(max(self.signal, 1e-300) / self.noise)


@dataclass(frozen=True)
class Wanted:
    """The results of the float graph on samples.

    outputs  of each chunk
    right    samples whose greatest output is their label; None without labels
    """

    execution: Execution
    samples: Samples
    outputs: tuple[Mapping[str, Array], ...]
    right: int | None


@dataclass(frozen=True)
class Measured:
    """outputs   all of them together
    right     as in Wanted
    """

    outputs: Power
    right: int | None


def wanted(execution: Execution, samples: Samples) -> Wanted:
    """One run of the float graph."""
    names = execution.graph.outputs
    chunks = tuple({n: values[n] for n in names} for values in execution.over(samples))
    return Wanted(
        execution, samples, chunks, _right(samples, [c[names[0]] for c in chunks])
    )


def measured(want: Wanted, graph: Graph) -> Measured:
    """One run of a quantised graph, whose outputs stand for the float one's in order.

    Errors  NodeError
    """
    power, first = Power(), []
    names = want.execution.graph.outputs
    runs = _runs(want, graph)
    for chunk, values in zip(want.outputs, runs, strict=True):
        made = [_real(graph, name, values[name]) for name in graph.outputs]
        first.append(made[0])
        for name, got in zip(names, made, strict=True):
            power = power.plus(chunk[name].astype(np.float64), got)
    return Measured(power, _right(want.samples, first))


def noise(want: Wanted, graph: Graph, layers: Mapping[str, str]) -> dict[str, Power]:
    """The noise of each layer; layers: float tensor -> the quantised graph's tensor for
    it."""
    found = {name: Power() for name in layers}
    floats = want.execution.over(want.samples)
    for chunk, values in zip(floats, _runs(want, graph), strict=True):
        for name, made in layers.items():
            got = _real(graph, made, values[made])
            found[name] = found[name].plus(chunk[name].astype(np.float64), got)
    return found


def _right(samples: Samples, scores: Sequence[Array]) -> int | None:
    if samples.labels is None:
        return None
    found = np.concatenate([s.reshape(len(s), -1).argmax(1) for s in scores])
    return int((found == samples.labels).sum())


def _runs(want: Wanted, graph: Graph) -> Iterator[dict[str, Array]]:
    """On the samples as the quantised graph's inputs hold them."""
    samples, inputs = want.samples, dict(want.samples.inputs)
    for name in graph.inputs:
        tensor = graph.tensor(name)
        if tensor.quant is not None and inputs[name].dtype.kind == "f":
            inputs[name] = quantized(inputs[name], tensor, "even")
    given = Samples(inputs, samples.labels, samples.count)
    yield from like(graph, want.execution).over(given)


def _real(graph: Graph, name: str, value: Array) -> Numbers:
    tensor = graph.tensor(name)
    return value.astype(np.float64) if tensor.quant is None else real(value, tensor)
