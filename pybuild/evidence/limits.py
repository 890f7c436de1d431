"""The limits of what is known of a build: those of the tools, and those in its own
facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pybuild.evidence.tool import is_released
from pybuild.library import Library

GENERAL = (
    "The checker of MISRA C:2012 is cppcheck's free add-on: it is not certified, knows "
    "a part of the amendments, and looks at no instruction in __asm__.",
    "Coverage, MC/DC and models of readers are of crt's sources as tests compile them, "
    "by the project; they were not measured again for this build.",
    "A requirement is named by a test that the project runs; whether the test is "
    "enough is for a reviewer to judge.",
    "Compilers, linkers, start-up code and other firmware are not part of this.",
    "A bit that flips in an instance (its addresses) is not noticed.",
    "Overflow of signed sums in kernels is excluded by ranges when the model is built, "
    "and watched by UBSan in the project's tests, not proven of this build.",
)


def limits(
    library: Library,
    layers: Sequence[Mapping[str, Any]],
    machine: Mapping[str, Any],
    comparison: Mapping[str, Any],
    untested: int,
) -> Iterator[str]:
    """The limits of what is known, those of this build first.

    untested  promises of the headers that no test names
    """
    if not is_released():
        yield "pybuild was run from a checkout, which may hold changes: see its hash."
    opened = [row["short"] for row in layers if not row["proven"]]
    if opened:
        yield f"Not every access is proven to stay inside: {', '.join(opened)}."
    loops = [row["short"] for row in layers if row["data_loops"]]
    if loops:
        yield f"Time depends on data without a bound here: {', '.join(loops)}."
    sums = [row["short"] for row in layers if row["sum"] is None]
    if sums:
        yield f"No int32 sums, or of weights that may be replaced: {', '.join(sums)}."
    if "reason" in machine:
        yield f"Stack and worst-case instructions are not bounded: {machine['reason']}."
    elif not machine["worst"] or machine["worst"]["instructions"] is None:
        why = (machine["worst"] or {}).get("open", ("the simulator says nothing",))
        yield f"Instructions have no bound: {'; '.join(why)}."
    if not comparison["own_samples"]:
        yield "The comparison is of seeded inputs: no samples were given (--data)."
    if not comparison["ok"]:
        yield "Values DIFFER from the reference beyond its tolerance."
    if library.report.parameters:
        yield "Parameters may be replaced on the device: figures are of those built in."
    if library.options.verify:
        yield "Bits that flip in flash are found when NAME_verify is called."
    else:
        yield "Const tables in flash are trusted: it was built without --verify."
    if untested:
        yield f"{untested} promises of the headers have no test that names them."
    yield from GENERAL
