"""The same inputs through a build's back ends and a reference interpreter.

Compares values by tensor name; knows nothing of plans or generated code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybuild.errors import BuildError
from pybuild.host.lazy_buffers import bind_lazy
from pybuild.host.trace import recorded
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from pybuild.progress import Progress, silent
from pybuild.records import dataclass
from pybuild.verify.carried import carried
from pybuild.verify.classes import REFERENCE, Classes, classes_of
from pybuild.verify.compare import (
    HYBRID_TOLERANCE,
    Judge,
    Tally,
    Values,
    layer_of,
    ranges,
)
from pybuild.verify.judgement import (
    Judgement,
    by_roundings,
    by_standard,
    limits_of,
    values_of,
)
from pybuild.verify.other_kernels import beside
from pybuild.verify.own_samples import inputs_of
from pybuild.verify.reference import Reference, reference
from pybuild.verify.rooms import by_rooms
from pybuild.verify.roundings import Roundings
from pybuild.verify.samples import Inputs, Sample, sample, samples
from pybuild.verify.stream import feed, newest
from pybuild.verify.wide import Wide, judges_of, wide_sample

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library
    from pybuild.host.native import Net
    from pybuild.quantisation.samples import Samples

BACKENDS = ("c", "llvm")
# references that follow the nodes of an ONNX file
_BY_NODES = ("ort", "standard")
EQUAL_BUT = "equal to the standard but for roundings of float32:"


@dataclass(frozen=True)
class CheckResult:
    """The result of a comparison: with what, and what each back end showed.

    notes   what a reader must know to judge the figures
    classes  of a user's own samples: which were said
    wide    one more sample, whose float inputs are far from -1..1
    """

    model: str
    reference: str
    samples: int
    rounding: str
    per_layer: bool
    tensors: int
    tolerance: str
    backends: Mapping[str, Tally]
    ok: bool
    notes: tuple[str, ...] = field(default=())
    classes: Classes | None = None
    wide: Wide | None = None

    def __repr__(self) -> str:
        most = max((tally.max_abs for tally in self.backends.values()), default=0)
        judged = "equal" if self.ok else "NOT equal"
        what = f"{self.samples} samples, max |diff| {most:g}, {judged}"
        return f"CheckResult({self.model!r} against {self.reference}, {what})"

    def to_json(self) -> dict[str, Any]:
        backends = {name: tally.to_json() for name, tally in self.backends.items()}
        plain = {**self.__dict__, "backends": backends, "notes": list(self.notes)}
        del plain["ok"], plain["classes"]
        plain["wide"] = None if self.wide is None else self.wide.to_json()
        if self.classes is not None:
            plain["classes"] = self.classes.to_json()
        return {**plain, "ok": self.ok}


@dataclass(frozen=True)
class _Case:
    """A sample with the reference's values."""

    sample: Sample
    values: Values


def check(
    model_path: str | Path,
    library: Library,
    backends: Sequence[str] = (),
    ref: str = "auto",
    samples: int = 20,
    per_layer: bool = False,
    seed: int = 0,
    progress: Progress = silent,
    own: Samples | None = None,
) -> CheckResult:
    """Runs `samples` seeded inputs, or the user's own, everywhere and compares.

    backends   which, all must work; empty: all that work here
    per_layer  compares intermediates too, taken from the plan that ships
    Errors     BuildError where a reference or a named back end is missing
    """
    path, graph = Path(model_path), library.plan.graph
    whole = _whole(library, per_layer)
    rounding = library.report.rounding
    known = reference(ref, path, whole, rounding, per_layer)

    @functools.cache
    def full() -> Reference:
        """The reference with all it can give; only a difference asks for it."""
        return reference(ref, path, graph, rounding)

    per_layer = per_layer and not known.hybrid
    if own is None:
        cases, notes = _cases(whole, known, samples, seed, per_layer)
    else:
        cases, notes = _cases_of(whole, known, own, per_layer), []
    cases = [replace(c, values=newest(graph, c.values)) for c in cases]
    wide = wide_sample(whole, seed) if own is None and not known.hybrid else None
    nets, missing = _nets(library, backends)
    judge = Judge(graph, limits_of(known), ranges(graph, (c.values for c in cases)))
    try:
        tallies, seen_by = _run_all(judge, nets, cases, per_layer, full, progress)
        far = {name: Tally() for name in nets}
        if wide is not None:
            names = _compared(whole, per_layer)
            values = values_of(whole, known.run(wide.sample.inputs), names)
            case = _Case(wide.sample, newest(graph, values))
            far = _far(judge, nets, wide, case, full)
    finally:
        for net in nets.values():
            net.close()
    known, tallies, judge, more, rounded = _fair(
        path, library, whole, cases, seen_by, _Found(known, tallies, judge)
    )
    notes = [*notes, *more]
    if not (rounded or known.hybrid or all(t.good for t in tallies.values())):
        given = [case.sample.inputs for case in cases]
        near = by_rooms(judge, given, [case.values for case in cases], seen_by)
        if near is not None:
            tallies, note = near
            notes.append(note)
    tallies = {name: tally + far[name] for name, tally in tallies.items()}
    if known.lacking:
        given = [case.sample.inputs for case in cases]
        notes.append(beside(path, whole, given, [case.values for case in cases]))
    every = {REFERENCE: [case.values for case in cases], **seen_by}
    return CheckResult(
        model=path.name,
        reference=known.name,
        samples=len(cases),
        rounding=rounding,
        per_layer=per_layer,
        tensors=len(cases[0].values) if cases else 0,
        tolerance=str(judge.limits),
        backends=tallies,
        ok=(rounded or all(tally.good for tally in tallies.values()))
        and all(tally.good for tally in far.values()),
        notes=(*notes, *missing, *_about(known)),
        classes=None
        if own is None
        else classes_of(graph.outputs[0], every, own.labels),
        wide=wide,
    )


def _whole(library: Library, per_layer: bool) -> Graph:
    """The graph as its file has it: of a stream, the one over the whole window."""
    graph = library.plan.graph
    if not graph.windows:
        return graph
    if per_layer:
        what = "layers of a stream have the rows of several runs"
        raise BuildError("--per-layer", what, "leave it out, or --stream")
    return library.of_window()


def _run_all(
    judge: Judge,
    nets: Mapping[str, Net],
    cases: Sequence[_Case],
    per_layer: bool,
    full: Callable[[], Reference],
    progress: Progress,
) -> tuple[dict[str, Tally], dict[str, list[Values]]]:
    """Each case through each back end: how far it is off, and the values."""
    graph = judge.graph
    tallies = {name: Tally() for name in nets}
    seen_by: dict[str, list[Values]] = {name: [] for name in nets}
    for index, case in enumerate(cases):
        for name, net in nets.items():
            known_bad = tallies[name].mismatches or graph.windows
            trace = None if known_bad else full
            seen, have = _compare(judge, net, case, per_layer, trace)
            tallies[name] += seen
            seen_by[name].append({n: have[n] for n in case.values if n in have})
        progress(index + 1, len(cases))
    return tallies, seen_by


def _far(
    judge: Judge,
    nets: Mapping[str, Net],
    wide: Wide,
    case: _Case,
    full: Callable[[], Reference],
) -> dict[str, Tally]:
    """The results of the back ends for the wide sample."""
    graph, found = judge.graph, dict[str, Tally]()
    per_layer = len(case.values) > len(graph.outputs)
    for one in judges_of(graph, judge.limits, wide, case.values):
        trace = None if graph.windows else full
        for name, net in nets.items():
            found[name], _ = _compare(one, net, case, per_layer, trace)
        if all(tally.good for tally in found.values()):
            break
    return found


@dataclass(frozen=True)
class _Found:
    """The comparisons so far, and with what."""

    known: Reference
    tallies: dict[str, Tally]
    judge: Judge


def _fair(
    path: Path,
    library: Library,
    whole: Graph,
    cases: Sequence[_Case],
    seen_by: Mapping[str, Sequence[Values]],
    found: _Found,
) -> tuple[Reference, dict[str, Tally], Judge, list[str], bool]:
    """By the standard, where a back end is not equal to ONNX Runtime; notes, and
    whether all that differs is rounding of float32.
    """
    known, tallies, judge = found.known, found.tallies, found.judge
    bad = {n: seen_by[n] for n, tally in tallies.items() if not tally.good}
    if not bad or known.kind not in _BY_NODES:
        return known, tallies, judge, [], False
    fair: Judgement | None = None
    given = [c.sample.inputs for c in cases]
    if known.kind == "ort":
        fair = by_standard(path, whole, [c.values for c in cases], given, seen_by)
    rounded: Roundings | None = None
    unfair = fair is not None and not fair.ok
    whole_rows = not library.plan.graph.windows
    if whole_rows and (unfair or known.kind == "standard"):
        rounded = by_roundings(path, library, given, bad)
    notes = []
    if rounded is not None:
        notes = [f"{EQUAL_BUT} {rounded}"]
    elif fair is not None:
        notes = [fair.note]
    if fair is not None and (fair.ok or rounded is not None):
        known, tallies, judge = fair.reference, dict(fair.tallies), fair.judge
    return known, tallies, judge, notes, rounded is not None


def _cases_of(
    graph: Graph, known: Reference, own: Samples, per_layer: bool
) -> list[_Case]:
    names = _compared(graph, per_layer)
    return [
        _Case(Sample("own", given), values_of(graph, known.run(given), names))
        for given in inputs_of(own)
    ]


def _nets(
    library: Library, backends: Sequence[str]
) -> tuple[dict[str, Net], list[str]]:
    """Back ends by name; a default one that cannot work here becomes a note."""
    nets: dict[str, Net] = {}
    missing = []
    for name in backends or BACKENDS:
        try:
            nets[name] = bind_lazy(library.host(name))
        except BuildError as error:
            if backends or name == "llvm":
                raise
            missing.append(f"back end {name} was not run: {error}")
    return nets, missing


def _about(known: Reference) -> Iterator[str]:
    if known.missing:
        yield known.missing
    if known.hybrid:
        yield (
            "hybrid model: int8 weights with float activations, which "
            f"{known.name} quantises on the fly: only outputs are compared, "
            f"tolerance {HYBRID_TOLERANCE:g}"
        )


def _cases(
    graph: Graph, known: Reference, count: int, seed: int, per_layer: bool
) -> tuple[list[_Case], list[str]]:
    """Samples that tell something: one whose values are all constant is replaced."""
    names = _compared(graph, per_layer)
    cases, notes = [], []
    for index, given in enumerate(samples(graph, count, seed)):
        found = known.run(given.inputs)
        tries = 0
        while _says_nothing(graph, found) and tries < 8:
            kind = ("blobs", "uniform")[tries % 2]
            given = sample(graph, kind, (seed, index, tries))
            found = known.run(given.inputs)
            tries += 1
        if tries:
            outcome = "still" if _says_nothing(graph, found) else "replaced it"
            what = f"sample {index}: every intermediate was constant; {outcome}"
            notes.append(f"{what}: {given.kind}")
        cases.append(_Case(given, values_of(graph, found, names)))
    return cases, notes


def _compared(graph: Graph, per_layer: bool) -> list[str]:
    if not per_layer:
        return list(graph.outputs)
    made = [name for node in graph.nodes for name in node.outputs]
    return [*made, *(name for name in graph.outputs if name not in made)]


def _says_nothing(graph: Graph, found: Values) -> bool:
    told = [
        value
        for name, value in found.items()
        if name not in graph.inputs and name not in graph.constants and value.size > 1
    ]
    return bool(told) and all((value == value.flat[0]).all() for value in told)


def _compare(
    judge: Judge,
    net: Net,
    case: _Case,
    per_layer: bool,
    trace: Callable[[], Reference] | None,
) -> tuple[Tally, Values]:
    """One sample through one back end, and what it gave.

    trace  finds the layer of a difference
    """
    inputs = case.sample.inputs
    if judge.graph.state:
        net.reset()
    if per_layer:
        have = recorded(net, inputs)
        seen = judge.compare(have, case.values)
        if seen.mismatches:
            own = judge.compare(have, carried(judge.graph, inputs, have, case.values))
            seen = replace(own, max_abs=seen.max_abs)
        return seen, have
    if judge.graph.windows:
        feed(net, judge.graph, inputs)
        have = net.outputs()
    else:
        have = net.run(**inputs)
    seen = judge.compare(have, case.values)
    if trace is not None and seen.mismatches:
        seen = replace(seen, first_layer=_first_bad(judge, net, inputs, trace()))
    return seen, have


def _first_bad(judge: Judge, net: Net, inputs: Inputs, known: Reference) -> str:
    """The first layer that differs from the reference, else from numpy."""
    graph = judge.graph
    if graph.state:
        net.reset()
    found = recorded(net, inputs)
    for run in (known.run, lambda given: interpret(graph, given)):
        wanted = values_of(graph, run(inputs), _compared(graph, per_layer=True))
        exact = replace(judge, ranges=ranges(graph, [wanted]))
        layer = exact.compare(found, wanted).first_layer
        if layer is not None and layer != layer_of(graph, graph.outputs[0]):
            return layer
    return layer_of(graph, graph.outputs[0])
