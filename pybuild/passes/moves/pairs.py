"""A quantize and a dequantize of a float, as the file would have them."""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.graph import Node
from pybuild.passes.edit import Edit
from pybuild.passes.qdq import Form


def is_whole(node: Node | None) -> bool:
    """True if it makes floats of integers that the file means."""
    return (
        node is not None
        and node.op == "dequantize"
        and bool(node.attrs.get("simulated"))
    )


def quantised_pair(edit: Edit, name: str, form: Form) -> tuple[Node, Node]:
    """A quantize and a dequantize of a tensor."""
    x = edit.tensors[name]
    whole, real = edit.fresh(f"{name}.quantized"), edit.fresh(f"{name}.real")
    edit.tensors[whole] = replace(x, name=whole, dtype=form.dtype, quant=form.quant)
    edit.tensors[real] = replace(x, name=real)
    attrs = {"simulated": True}
    return (
        Node("quantize", whole, (name,), (whole,), attrs),
        Node("dequantize", real, (whole,), (real,), attrs),
    )
