"""`--rounding single` against LiteRT's default interpreter, which hands layers to
XNNPACK: of each operator of int8 how many outputs differ, and by how many steps.

python -m tests.frontends.tflite.xnnpack.near [OPERATOR...] measures what is in the
table of docs/integers.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.frontends.tflite import load
from pybuild.ops.interpret import interpret
from pybuild.passes import PassOptions, run
from tests.frontends.tflite.draws import drawn
from tests.frontends.tflite.files import QUANTISED, One

# operators that give LiteRT's integers whatever the scales
EQUAL = (
    "AVERAGE_POOL_2D", "BATCH_MATMUL", "CONCATENATION", "HARD_SWISH", "LEAKY_RELU",
    "LOGISTIC", "MAXIMUM", "MAX_POOL_2D", "MINIMUM", "PAD", "PRELU", "RELU", "RELU6",
    "RELU_N1_TO_1", "SQUARED_DIFFERENCE", "TANH",
)  # fmt: skip
# of others, the most outputs in a hundred that are a step off: with scales as they are
# drawn, and with powers of two, which meet ties
OFF: dict[str, tuple[float, float]] = {
    "ADD": (0.01, 0.01),
    "CONV_2D": (0.01, 0.3),
    "DEPTHWISE_CONV_2D": (0.01, 0.5),
    "FULLY_CONNECTED": (0.05, 0.3),
    "MEAN": (0.01, 10),
    "MUL": (0.01, 3),
    "QUANTIZE": (3, 1),
    "RESIZE_BILINEAR": (10, 10),
    "SOFTMAX": (0.1, 0.1),
    "SUB": (0.01, 0.01),
    "SUM": (0.01, 10),
    "TRANSPOSE_CONV": (0.1, 0.5),
}
OPERATORS = (*sorted((*EQUAL, *OFF)),)
# without a bias LiteRT 2.3 ends the process: XNNPACK reads one
_BIASED = ("DEPTHWISE_CONV_2D",)


@dataclass
class Found:
    """outputs that were compared, how many differ, by how many steps at most; files,
    and those that XNNPACK takes.
    """

    outputs: int = 0
    differ: int = 0
    steps: int = 0
    files: int = 0
    taken: int = 0

    @property
    def share(self) -> float:
        """Of a hundred outputs."""
        return 100 * self.differ / max(1, self.outputs)

    def add(self, ours: Array, theirs: Array) -> None:
        far = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
        self.outputs += far.size
        self.differ += int(np.count_nonzero(far))
        self.steps = max(self.steps, int(far.max(initial=0)))


def default_net(data: bytes) -> Any:
    """LiteRT as it is without options."""
    from ai_edge_litert import interpreter

    net = interpreter.Interpreter(model_content=data)
    net.allocate_tensors()
    return net


def takes(net: Any) -> bool:
    """Whether XNNPACK computes some layer."""
    return any(op["op_name"] == "DELEGATE" for op in net._get_ops_details())


def ran(net: Any, sample: dict[str, Array]) -> list[Array]:
    for detail in net.get_input_details():
        net.set_tensor(detail["index"], sample[detail["name"]])
    net.invoke()
    return [np.array(net.get_tensor(d["index"])) for d in net.get_output_details()]


def measured(code: str, files: int, samples: int, ties: bool) -> Found:
    """ties  scales are powers of two"""
    found = Found()
    for number in range(files):
        one = drawn(code, "int8", number)
        if code in _BIASED and len(one.reads) < 3:
            continue
        if ties:
            _to_powers(one)
        _compare(one, samples, found)
    return found


def _compare(one: One, samples: int, found: Found) -> None:
    values = one.samples(samples)
    try:
        theirs = ran(default_net(one.bytes()), values[0])
    except RuntimeError:  # a type that LiteRT does not have there
        return
    if theirs[0].dtype.itemsize > 1:
        return
    for index, array in zip(one.outputs, theirs, strict=True):
        one.tensors[index] = replace(one.tensors[index], shape=array.shape)
    data = one.bytes()
    net = default_net(data)
    graph = run(load("one.tflite", data, {}), PassOptions("single"))
    found.files += 1
    found.taken += takes(net)
    for sample in values:
        ours = interpret(graph, sample)
        for name, array in zip(graph.outputs, ran(net, sample), strict=True):
            found.add(ours[name], array)


def _to_powers(one: One) -> None:
    """All scales, and those of a bias with them."""
    weights: tuple[float, ...] = ()
    for index, tensor in enumerate(one.tensors):
        if tensor.kind.lower() in QUANTISED and tensor.scale:
            scale = tuple(2.0 ** round(math.log2(s)) for s in tensor.scale)
            one.tensors[index] = replace(tensor, scale=scale)
            weights = weights if tensor.data is None else scale
    (scale,) = one.tensors[one.inputs[0]].scale
    for index, tensor in enumerate(one.tensors):
        if tensor.kind == "INT32" and tensor.scale:
            made = tuple(scale * w for w in weights)
            one.tensors[index] = replace(tensor, scale=made)


def main(arguments: Sequence[str]) -> int:
    for code in arguments or OPERATORS:
        plain, ties = (measured(code, 40, 40, t) for t in (False, True))
        print(
            f"{code:20} {plain.taken:2} of {plain.files:2} by XNNPACK; "
            f"{plain.share:.4f} % of {plain.outputs}, {plain.steps} steps; ties "
            f"{ties.share:.4f} % of {ties.outputs}, {ties.steps} steps"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
