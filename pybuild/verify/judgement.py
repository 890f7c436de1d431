"""Who is right where ONNX Runtime and a build differ: the file's nodes, in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.host.lazy_buffers import bind_lazy
from pybuild.host.trace import recorded
from pybuild.ir.graph import Graph
from pybuild.records import dataclass
from pybuild.verify.apart import ReferenceCrashed, ask, possible
from pybuild.verify.compare import (
    HYBRID_TOLERANCE,
    Judge,
    Limits,
    Tally,
    Values,
    distance,
    ranges,
    step_of,
)
from pybuild.verify.onnx_reference import unfused
from pybuild.verify.reference import Reference, reference
from pybuild.verify.roundings import Roundings, roundings
from pybuild.verify.stream import newest

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library


@dataclass(frozen=True)
class Judgement:
    """The results of each back end beside the standard.

    ok    all are equal to it
    note  what ONNX Runtime does otherwise, for the user
    """

    reference: Reference
    judge: Judge
    tallies: Mapping[str, Tally]
    ok: bool
    note: str


def by_standard(
    path: Path,
    graph: Graph,
    theirs: Sequence[Values],
    inputs: Sequence[Mapping[str, Array]],
    ours: Mapping[str, Sequence[Values]],
) -> Judgement | None:
    """For each sample: the outputs of ONNX Runtime, its inputs, and the outputs of the
    back ends; None if the standard's interpreter cannot run the file.
    """
    names = list(theirs[0])
    try:
        fair = reference("standard", path, graph, every=names != list(graph.outputs))
        found = [newest(graph, values_of(graph, fair.run(x), names)) for x in inputs]
    except BuildError:
        return None
    judge = Judge(graph, limits_of(fair), ranges(graph, found))
    tallies = {
        name: sum(map(judge.compare, seen, found), Tally())
        for name, seen in ours.items()
    }
    ok = all(tally.good for tally in tallies.values())
    far = _steps(graph, theirs, found)
    if not ok:
        most = max(tally.mismatches for tally in tallies.values())
        note = f"{most} values differ from the standard, too"
        return Judgement(fair, judge, tallies, ok, f"{note}; ONNX Runtime's {far}")
    note = f"equal to the standard; ONNX Runtime differs here by {far}"
    return Judgement(fair, judge, tallies, ok, f"{note} {_why(path)}".rstrip())


def _why(path: Path) -> str:
    """ONNX Runtime's explanation of how it runs the file; nothing is judged by it."""
    if not possible():
        return unfused(path)
    place = {"unfused": str(path.resolve())}
    try:
        return str(ask(path, "ONNX Runtime", place, {})[0]["said"])
    except ReferenceCrashed as error:
        return f"(why is not known: {error.problems[0].what})"


def by_roundings(
    path: Path,
    library: Library,
    inputs: Sequence[Mapping[str, Array]],
    ours: Mapping[str, Sequence[Values]],
) -> Roundings | None:
    """The roundings, if all differences from the standard are rounding of float32,
    layer by layer; None if not, or if it cannot be decided.
    """
    graph, total = library.plan.graph, Roundings()
    for name, outputs in ours.items():
        net = bind_lazy(library.host(name))
        try:
            for given, gave in zip(inputs, outputs, strict=True):
                if graph.state:
                    net.reset()
                have = recorded(net, given)
                same = all(have[n].tobytes() == gave[n].tobytes() for n in gave)
                found = roundings(path, graph, given, have) if same else None
                if found is None or found.wrong:
                    return None
                total += found
        finally:
            net.close()
    return total


def _steps(graph: Graph, theirs: Sequence[Values], found: Sequence[Values]) -> str:
    """How far another interpreter's outputs are from the standard's: "2 steps"; what is
    NaN or infinite in one of them is only counted."""
    most, count, endless, integers = 0.0, 0, 0, False
    for have, want in zip(theirs, found, strict=True):
        for name in set(graph.outputs) & have.keys() & want.keys():
            step = step_of(graph, name)
            whole = want[name].dtype.kind in "iu"
            integers = integers or whole or step > 0
            far = distance(have[name], want[name]) / (step or 1.0)
            near = far[np.isfinite(far)]
            endless += far.size - near.size
            most = max(most, float(near.max(initial=0.0)))
            count += int((near > 1e-3 * (step > 0 or whole)).sum())
    more = f", by NaN or infinity in {endless} values" if endless else ""
    if not integers:
        return f"{most:.2g}{more}"
    steps = max(round(most), 1 if count else 0)
    return f"{steps} step{'s' * (steps != 1)} in {count} values{more}"


def limits_of(known: Reference) -> Limits:
    """How far a build may be from a reference."""
    if known.hybrid:
        return Limits(relative=HYBRID_TOLERANCE)
    return Limits(steps=0 if known.exact else 1)


def values_of(graph: Graph, found: Values, names: Sequence[str]) -> dict[str, Array]:
    """The reference's values of `names`, if type and shape are ours. For a tensor that
    lost channels: of those that remain.

    Of a tensor that lost channels: of those that it still has.
    """
    values = {}
    kept = {n.output: n.attrs["channels"] for n in graph.nodes if "channels" in n.attrs}
    for name in names:
        if name in found:
            value, tensor = found[name], graph.tensor(name)
            if name in kept and value.shape[-1] > tensor.shape[-1]:
                value = value[..., list(kept[name])]
            shape = list(tensor.shape)
            if name in graph.bounded and value.ndim == len(shape):
                axis = graph.bounded[name].axis  # as long there as it holds
                shape[axis] = value.shape[axis]
            if (value.shape, value.dtype) == (tuple(shape), tensor.dtype.numpy):
                values[name] = value
    return values
