"""Compares a board with this machine on the same inputs: integers must have the same
bits. Also compares this machine with the reference, so that both cannot be wrong in the
same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybuild.boards.device import Device, program_of, run_program, run_recorded
from pybuild.dtype import Array
from pybuild.host.lazy_buffers import bind_lazy
from pybuild.host.trace import recorded
from pybuild.package.curve import Fit, fit_facts
from pybuild.records import dataclass
from pybuild.verify.check import CheckResult, check
from pybuild.verify.classes import REFERENCE, classes_of
from pybuild.verify.compare import Judge, Limits, Tally, ranges
from pybuild.verify.own_samples import inputs_of
from pybuild.verify.samples import Inputs, samples
from pybuild.verify.wide import Wide, wide_sample

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library
    from pybuild.quantisation.samples import Samples

Values = Mapping[str, Array]


@dataclass(frozen=True)
class BoardCheck:
    """A comparison, and where it was made; fit: as of BoardBench."""

    device: Device
    result: CheckResult
    fit: Fit | None = None

    def to_json(self) -> dict[str, Any]:
        fit = fit_facts(self.fit)
        return {**self.device.to_json(), **self.result.to_json(), **fit}


def check_on_board(
    device: Device,
    library: Library,
    path: str | Path,
    count: int = 20,
    per_layer: bool = False,
    seed: int = 0,
    own: Samples | None = None,
    ref: str = "",
) -> BoardCheck:
    """Compares `count` seeded inputs, or the user's own, with the host's LLVM back end,
    and that with a reference.

    per_layer  compares what every step writes, too
    ref        as crt check --ref; "": none
    Errors     BuildError; LimitError where the program does not fit the board
    """
    program = program_of(device, library, per_layer)
    library = program.library
    given = inputs_of(own)
    far: list[Wide] = []
    if not given:
        given = [s.inputs for s in samples(library.plan.graph, count, seed)]
        far = _wide(library, seed)
        given += [wide.sample.inputs for wide in far]
    wanted = on_host(library, given, per_layer)
    if per_layer:
        found: Sequence[Values] = [run_recorded(device, library, g) for g in given]
    else:
        found = run_program(device, program, given)

    def first_bad(inputs: Inputs) -> str | None:
        return None if per_layer else _first_bad(device, library, inputs)

    name, by = device.board.name, f"{device.toolchain}, {device.simulator.name}"
    result = against_host(
        library, path, name, given, wanted, found, own, first_bad, len(far)
    )
    result = replace(result, wide=far[0] if far else None)
    result = replace(result, per_layer=per_layer, notes=(by,))
    if ref:
        here = check(path, library, ("llvm",), ref, count, seed=seed, own=own)
        result = beside_reference(result, here)
    return BoardCheck(device, result, program.fit)


def _wide(library: Library, seed: int) -> list[Wide]:
    """The wide sample, where there is one; of a stream's rows there is none."""
    graph = library.plan.graph
    found = None if graph.windows else wide_sample(graph, seed)
    return [] if found is None else [found]


def beside_reference(result: CheckResult, here: CheckResult) -> CheckResult:
    """The comparison of a board with this machine, beside the reference of `here`."""
    return replace(
        result,
        reference=f"this machine, and that against {here.reference}",
        backends={**result.backends, "this machine": here.backends["llvm"]},
        tolerance=here.tolerance,
        ok=result.ok and here.ok,
        notes=(*result.notes, *here.notes),
        wide=here.wide,
    )


def against_host(
    library: Library,
    path: str | Path,
    name: str,
    given: Sequence[Inputs],
    wanted: Sequence[Values],
    found: Sequence[Values],
    own: Samples | None = None,
    first_bad: Callable[[Inputs], str | None] = lambda inputs: None,
    wide: int = 0,
) -> CheckResult:
    """The comparison of a board's results with those of this machine.

    wide       how many of the last samples are wide: they have ranges of their own
    first_bad  the layer in which an input becomes something else
    """
    graph = library.plan.graph
    judge = Judge(graph, Limits(), ranges(graph, wanted[: len(wanted) - wide]))
    far = Judge(graph, Limits(), ranges(graph, wanted[len(wanted) - wide :]))
    tally = Tally()
    for n, (inputs, have, want) in enumerate(zip(given, found, wanted, strict=True)):
        seen = (judge if n < len(wanted) - wide else far).compare(have, want)
        if seen.mismatches and not tally.mismatches:
            seen = replace(seen, first_layer=first_bad(inputs) or seen.first_layer)
        tally += seen
    labels = None if own is None else own.labels
    both = {REFERENCE: wanted, name: found}
    return CheckResult(
        model=Path(path).name,
        reference="this machine, back end llvm",
        samples=len(given) - wide,
        rounding=library.report.rounding,
        per_layer=False,
        tensors=len(found[0]),
        tolerance=str(judge.limits),
        backends={name: tally},
        ok=tally.good,
        classes=None if own is None else classes_of(graph.outputs[0], both, labels),
    )


def on_host(
    library: Library, given: Sequence[Inputs], per_layer: bool
) -> list[dict[str, Array]]:
    """The outputs of back end llvm on this machine."""
    net = bind_lazy(library.host("llvm"))
    try:
        found = []
        for inputs in given if per_layer else ():
            net.reset()  # each is in a program of its own
            found.append(recorded(net, inputs))
        if per_layer:
            return found
        return [net(**inputs) for inputs in given]
    finally:
        net.close()


def _first_bad(device: Device, library: Library, inputs: Inputs) -> str | None:
    """The first layer that differs from this machine's."""
    (wanted,) = on_host(library, [inputs], per_layer=True)
    graph = library.plan.graph
    judge = Judge(graph, Limits(), ranges(graph, [wanted]))
    found = run_recorded(device, library, inputs)
    for step in library.plan.steps:
        name = step.node.output
        if name not in found:
            continue
        seen = judge.compare({name: found[name]}, wanted)
        if seen.mismatches:
            return step.node.name
    return None
