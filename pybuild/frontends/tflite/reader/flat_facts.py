"""What a file says of the kernels with which LiteRT runs it."""

from __future__ import annotations

from pybuild.frontends.tflite.reader.few_bits import BITS
from pybuild.frontends.tflite.reader.flat import FlatModel

# what LiteRT computes with float activations that it quantises on the fly
_WEIGHTED = (
    "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "SVDF",
    "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM",
)  # fmt: skip
_WHOLE = {"INT8", *BITS}


def has_blocks(model: FlatModel) -> bool:
    """True if a tensor of the file has a scale for each block."""
    return any(tensor.blocks for one in model.subgraphs for tensor in one.tensors)


def is_hybrid(model: FlatModel) -> bool:
    """A float layer that reads int8 weights as they are, also in a loop."""
    found, reached = [model], {model.number}
    for graph in found:  # which grows
        calls = graph.called() - reached
        reached |= calls
        found += [one for one in model.subgraphs if one.number in calls]
    return any(map(_has_hybrid, found))


def _has_hybrid(model: FlatModel) -> bool:
    kinds = [tensor.kind for tensor in model.tensors]
    for op in model.operators:
        if op.code not in _WEIGHTED:
            continue
        x, *others = (kinds[i] for i in op.inputs if 0 <= i < len(kinds))
        if x == "FLOAT32" and not _WHOLE.isdisjoint(others):
            return True
    return False
