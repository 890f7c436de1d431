"""The results of each layer of a run: its range, and where it leaves a reference.

Values are taken from the plan that ships, row by row as they are written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, Problem, fitting
from pybuild.host.lazy_buffers import bind_lazy
from pybuild.host.ndarray import converted
from pybuild.host.trace import recorded
from pybuild.ir.graph import Graph, Tensor
from pybuild.records import dataclass
from pybuild.verify.compare import Judge, Tally, ranges
from pybuild.verify.judgement import limits_of, values_of
from pybuild.verify.reference import reference
from pybuild.verify.samples import example_inputs

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library


@dataclass(frozen=True)
class LayerValues:
    """One output of one layer; numbers as they are stored, not as they are meant.

    short      the layer's name for people
    saturated  at the least or greatest value of an integer type; not finite
    against    the reference's values; None: it has none
    """

    layer: str
    short: str
    op: str
    tensor: str
    dtype: str
    shape: tuple[int, ...]
    min: float
    max: float
    mean: float
    zeros: int
    saturated: int
    elements: int
    against: Tally | None = None

    def to_json(self) -> dict[str, Any]:
        plain = {**self.__dict__, "shape": list(self.shape)}
        for key in ("min", "max", "mean"):
            plain[key] = plain[key] if math.isfinite(plain[key]) else None
        plain["against"] = self.against.to_json() if self.against else None
        return plain


@dataclass(frozen=True)
class DebugResult:
    """first_layer: the first that is further from the reference than it may be"""

    model: str
    backend: str
    reference: str | None
    tolerance: str | None
    layers: tuple[LayerValues, ...]
    first_layer: str | None

    @property
    def ok(self) -> bool:
        return self.first_layer is None

    def to_json(self) -> dict[str, Any]:
        rows = [row.to_json() for row in self.layers]
        return {**self.__dict__, "layers": rows, "ok": self.ok}


def debug(
    model_path: str | Path,
    library: Library,
    given: Mapping[str, Any] | None = None,
    ref: str | None = None,
    backend: str = "llvm",
) -> DebugResult:
    """Runs once and looks at every layer.

    given   the inputs; None: a seeded sample
    ref     the interpreter to compare with; None: none
    Errors  BuildError for inputs that do not fit, or a reference that is missing
    """
    path, graph = Path(model_path), library.plan.graph
    inputs = example_inputs(graph) if given is None else _inputs(graph, given)
    known = (
        None if ref is None else reference(ref, path, graph, library.report.rounding)
    )
    net = bind_lazy(library.host(backend))
    for name, value in inputs.items():
        (net.set_input if net.pushed.rows else net.bind_input)(name, value)
    found = recorded(net, {}, inputs)
    net.close()
    names = [name for node in graph.nodes for name in node.outputs]
    wanted: Mapping[str, Array] = {}
    judge = None
    if known is not None:
        wanted = values_of(graph, known.run(inputs), names)
        if known.hybrid:
            wanted = {n: v for n, v in wanted.items() if n in graph.outputs}
        judge = Judge(graph, limits_of(known), ranges(graph, [wanted]))
    rows = tuple(_row(graph, name, found, wanted, judge) for name in names)
    bad = (r.layer for r in rows if r.against is not None and not r.against.good)
    return DebugResult(
        model=path.name,
        backend=backend,
        reference=known.name if known else None,
        tolerance=str(judge.limits) if judge else None,
        layers=rows,
        first_layer=next(bad, None),
    )


def _inputs(graph: Graph, given: Mapping[str, Any]) -> dict[str, Array]:
    """The checked inputs of the model.

    Errors  BuildError with every input that is missing, unknown or does not fit
    """
    found = [
        Problem(
            "--data",
            f"'{name}' is not an input of the model",
            fitting(name, graph.inputs),
        )
        for name in given
        if name not in graph.inputs
    ]
    made: dict[str, Array] = {}
    for name in graph.inputs:
        if name not in given:
            found.append(Problem("--data", f"has no array '{name}'"))
            continue
        try:
            made[name] = converted(graph.tensor(name), given[name])
        except ValueError as error:
            found.append(Problem("--data", str(error)))
    if found:
        raise BuildError.of(found)
    return made


def _row(
    graph: Graph,
    name: str,
    found: Mapping[str, Array],
    wanted: Mapping[str, Array],
    judge: Judge | None,
) -> LayerValues:
    tensor, node = graph.tensor(name), graph.producers()[name]
    against = None
    if judge is not None and name in wanted:
        against = judge.compare({name: found[name]}, {name: wanted[name]})
    facts = _facts(tensor, found[name])
    shape, kind = tensor.shape, tensor.dtype.value
    return LayerValues(
        node.name,
        graph.called(node),
        node.op,
        name,
        kind,
        shape,
        *facts,
        tensor.size,
        against,
    )


def _facts(tensor: Tensor, value: Array) -> tuple[float, float, float, int, int]:
    """Least, greatest and mean value, how many are zero, how many are saturated."""
    numbers = value.astype(np.float64)
    if tensor.dtype.is_float:
        saturated = int(np.count_nonzero(~np.isfinite(numbers)))
    elif tensor.dtype is DType.BOOL:
        saturated = 0
    else:
        ends = (tensor.dtype.low, tensor.dtype.high)
        saturated = int(np.isin(value, ends).sum())
    zeros = int(np.count_nonzero(numbers == 0))
    if not numbers.size:
        return 0.0, 0.0, 0.0, zeros, saturated
    with np.errstate(invalid="ignore", over="ignore"):
        least, most = float(numbers.min()), float(numbers.max())
        return least, most, float(numbers.mean()), zeros, saturated
