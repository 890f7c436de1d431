"""A user's samples through a build: what it says of them, and how far each layer is
off. Values are taken from the plan that ships.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.host.lazy_buffers import bind_lazy
from pybuild.host.trace import recorded
from pybuild.html.samples import LayerError, SampleFacts
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.fixed_point.quant import real
from pybuild.progress import Progress, silent
from pybuild.quantisation.measure import Power
from pybuild.records import dataclass
from pybuild.verify.check import check
from pybuild.verify.classes import Classes
from pybuild.verify.compare import distance
from pybuild.verify.judgement import values_of
from pybuild.verify.own_samples import inputs_of
from pybuild.verify.real_numbers import in_real_numbers
from pybuild.verify.reference import reference

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library
    from pybuild.quantisation.samples import Samples

_BUILD, _REAL = "build", "real numbers"
BESIDE = "the same layers in real numbers"
Values = Mapping[str, Array]


@dataclass
class _Seen:
    """The values of one tensor, over the samples so far."""

    low: float = math.inf
    high: float = -math.inf
    cut: int | None = None
    elements: int = 0
    unequal: int = 0
    compared: int = 0
    max_abs: float = 0.0
    power: Power | None = None

    def add(self, tensor: Tensor, have: Array, want: Array | None) -> None:
        numbers = real(have, tensor)
        if have.size:
            self.low = min(self.low, float(numbers.min()))
            self.high = max(self.high, float(numbers.max()))
        self.elements += have.size
        if want is not None:
            far = distance(have, want)
            self.unequal += int(np.count_nonzero(far))
            self.compared += have.size
            self.max_abs = max(self.max_abs, float(far.max(initial=0.0)))

    def beside(self, tensor: Tensor, have: Array, want: Array) -> None:
        got = real(have, tensor)
        self.power = (self.power or Power()).plus(want.astype(np.float64), got)


def over_samples(
    path: str | Path,
    library: Library,
    own: Samples,
    ref: str = "auto",
    progress: Progress = silent,
) -> SampleFacts:
    """Runs all samples, each by itself.

    ref     as crt check --ref
    Errors  BuildError for a stream, or a reference that is missing
    """
    path, graph = Path(path), library.plan.graph
    if graph.windows:
        what = "layers of a stream have the rows of several runs"
        raise BuildError("--data", what, "leave out --stream, or crt check --data")
    checked = check(path, library, ("llvm",), ref, progress=progress, own=own)
    known = reference(ref, path, graph, library.report.rounding)
    quantised = any(tensor.quant for tensor in graph.tensors.values())
    twin = in_real_numbers(graph) if quantised else None
    seen = {name: _Seen() for node in graph.nodes for name in node.outputs if name}
    net = bind_lazy(library.host("llvm"))
    said: list[int] = []
    try:
        for given in inputs_of(own):
            if graph.state:
                net.reset()
            have = recorded(net, given)
            want = values_of(graph, known.run(given), list(seen))
            ideal = _real(graph, want)
            cut: dict[str, int] = {}
            if twin is not None:
                ideal, cut = twin.run(given)
            for name, one in seen.items():
                _add(one, graph.tensor(name), have[name], want.get(name), ideal)
                if name in cut:
                    one.cut = (one.cut or 0) + cut[name]
            if twin is not None:
                said.append(int(ideal[graph.outputs[0]].argmax()))
    finally:
        net.close()
    (tally,) = checked.backends.values()
    return SampleFacts(
        count=own.count,
        labelled=own.labels is not None,
        reference=checked.reference,
        tolerance=checked.tolerance,
        ok=checked.ok,
        notes=checked.notes,
        unequal=tally.mismatches,
        beside=known.name if twin is None else BESIDE,
        layers=tuple(_rows(graph, seen)),
        classes=_classes(checked.classes, said),
    )


def _real(graph: Graph, found: Values) -> dict[str, Array]:
    return {name: real(value, graph.tensor(name)) for name, value in found.items()}


def _add(
    one: _Seen, tensor: Tensor, have: Array, want: Array | None, ideal: Values
) -> None:
    one.add(tensor, have, want)
    beside = ideal.get(tensor.name)
    if beside is not None and beside.shape == have.shape:
        one.beside(tensor, have, beside)


def _rows(graph: Graph, seen: Mapping[str, _Seen]) -> Iterator[LayerError]:
    for node in graph.nodes:
        for name in node.outputs:
            if name:
                yield _row(graph, node, graph.tensor(name), seen[name])


def _row(graph: Graph, node: Node, tensor: Tensor, one: _Seen) -> LayerError:
    compared = one.compared > 0
    share = one.unequal / max(one.compared, 1)
    return LayerError(
        name=node.name,
        short=graph.called(node),
        op=node.op,
        tensor=tensor.name,
        dtype=tensor.dtype.value,
        low=_finite(one.low),
        high=_finite(one.high),
        cut_off=None if one.cut is None else one.cut / max(one.elements, 1),
        unequal=share if compared and not tensor.dtype.is_float else None,
        max_abs=_finite(one.max_abs) if compared else None,
        error=None if one.power is None else one.power.share,
        snr=None if one.power is None else one.power.decibels,
    )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _classes(known: Classes | None, ideal: list[int]) -> dict[str, object] | None:
    if known is None:
        return None
    said = {_BUILD if who == "llvm" else who: k for who, k in known.said.items()}
    if ideal:
        said[_REAL] = tuple(ideal)
    return replace(known, said=said).to_json()
