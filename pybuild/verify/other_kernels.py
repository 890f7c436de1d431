"""LiteRT's own kernels beside what was compared, where it has no reference kernel of an
operator: how far they are, for the reader; nothing is judged by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph
from pybuild.verify.compare import Values, distance
from pybuild.verify.reference import other_kernels


def beside(
    path: Path, graph: Graph, inputs: Sequence[Mapping[str, Array]],
    want: Sequence[Values],
) -> str:  # fmt: skip
    """A comparison of the outputs of all samples with those of LiteRT's other
    kernels."""
    try:
        run = other_kernels(path, graph).run
        theirs = [run(given) for given in inputs]
    except BuildError as error:  # ReferenceCrashed, too
        return error.problems[0].what
    most, count, every, integers = 0.0, 0, 0, True
    for found, values in zip(theirs, want, strict=True):
        for name in graph.outputs:
            far = distance(found[name], values[name])
            most = max(most, float(far.max(initial=0.0)))
            count, every = count + int((far > 0).sum()), every + far.size
            integers = integers and values[name].dtype.kind in "iu"
    if not count:
        return f"LiteRT's other kernels give the same {every} numbers"
    far_off = f"{most:.0f} steps" if integers else f"{most:.2g}"
    differ = f"{count} of {every} numbers differ by {far_off} at most"
    return f"LiteRT's other kernels: {differ}"
