"""Tensors without elements: a file may ask for them; an input too small for an operator
is an error.
"""

from __future__ import annotations

from pybuild.errors import BuildError
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.reader.op import Op

# their inputs or attributes say how much there is, and it may be nothing
_SAID = frozenset({
    "CenterCropPad", "Compress", "ConcatFromSequence", "Constant", "ConstantOfShape",
    "Expand", "EyeLike", "Gather", "GatherElements", "GatherND", "If", "Loop",
    "NonMaxSuppression", "NonZero", "OneHot", "OptionalGetElement", "Pad", "Range",
    "Reshape", "Scan", "SequenceAt", "SequenceConstruct", "Shape", "Slice", "Split",
    "SplitToSequence", "Tile", "TopK", "Unique",
})  # fmt: skip


def refused(draft: Draft, op: Op) -> BuildError | None:
    """Return an error if an operator's result is empty although its inputs are not."""
    if op.domain or op.kind in _SAID:
        return None
    for name in op.outputs:
        made = () if not name or draft.no_tensor(name) else draft.shape(name)
        if 0 in made and not any(_empty(draft, one) for one in op.inputs if one):
            what = f"nothing is left of its input: '{name}' has shape {list(made)}"
            return op.invalid(what, "a larger input, or padding")
    return None


def _empty(draft: Draft, name: str) -> bool:
    return not draft.no_tensor(name) and 0 in draft.shape(name)
