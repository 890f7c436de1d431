"""Turns the results of scikit-learn's classifiers, text labels and scores by name, into
tensors of numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_ML = "ai.onnx.ml"
_NAMES = ("classlabels_strings", "classlabels_text")


def numbered(model: ModelProto) -> None:
    """Changes outputs of the model: a label that is text is its number in the file's
    list of labels, and ZipMap gives the scores that it reads, in the same order.
    """
    from onnx import TensorProto

    outputs = {value.name: value for value in model.graph.output}
    read = {name for node in model.graph.node for name in node.input}
    for node in model.graph.node:
        if node.domain != _ML or not node.output or node.output[0] not in outputs:
            continue
        value = outputs[node.output[0]]
        if node.op_type == "ZipMap" and value.name not in read:
            node.op_type, node.domain = "Identity", ""
            del node.attribute[:]
            value.type.Clear()
            value.type.tensor_type.elem_type = TensorProto.FLOAT
        elif value.name not in read and _count(node):
            value.type.tensor_type.elem_type = TensorProto.INT64
            _number(node)


def _count(node: NodeProto) -> int:
    return sum(len(a.strings) for a in node.attribute if a.name in _NAMES)


def _number(node: NodeProto) -> None:
    from onnx import helper

    count, tree = _count(node), node.op_type == "TreeEnsembleClassifier"
    kept = [a for a in node.attribute if a.name not in _NAMES]
    del node.attribute[:]
    name = "classlabels_int64s" if tree else "classlabels_ints"
    node.attribute.extend([*kept, helper.make_attribute(name, list(range(count)))])
