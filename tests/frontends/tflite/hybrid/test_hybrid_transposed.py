"""TRANSPOSE_CONV of int8 weights on float32 images: weights of a byte, numbers near
LiteRT's, which rounds each product and each sum to float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ir.graph import Node, Tensor
from pybuild.ops.hybrid import infer_conv2d
from pybuild.ops.interpret import interpret
from pybuild.passes.phases import split_phases
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write

_SAME, _VALID = 0, 1
_RELU6 = 3
NEAR = 2e-6  # of the greatest number


@dataclass(frozen=True)
class Transposed:
    """One operator; the shape of its images, and of its weights as the file has it."""

    x: tuple[int, int, int, int]
    w: tuple[int, int, int, int]
    strides: tuple[int, int] = (2, 2)
    padding: int = _SAME
    each: bool = False
    bias: bool = False
    activation: int = 0
    axis: int = 0

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows and columns that come out."""
        pairs = zip(self.x[1:3], self.w[1:3], self.strides, strict=True)
        if self.padding == _SAME:
            down, across = (rows * stride for rows, _, stride in pairs)
        else:
            down, across = ((rows - 1) * stride + size for rows, size, stride in pairs)
        return down, across

    def data(self) -> bytes:
        rng = np.random.default_rng((*self.x, *self.w))
        weights = rng.integers(-127, 128, self.w).astype(np.int8)
        count = self.w[self.axis] if self.each else 1
        scales = tuple(map(float, rng.uniform(0.004, 0.02, count).astype(np.float32)))
        shape = np.asarray((self.x[0], *self.sizes, self.w[0]), np.int32)
        bias = rng.normal(0, 1, self.w[0]).astype(np.float32)
        tensors = [
            FileTensor("x", self.x),
            FileTensor("w", self.w, "INT8", weights, scales, (0,) * count, self.axis),
            FileTensor("shape", (4,), "INT32", shape),
            FileTensor("b", bias.shape, "FLOAT32", bias),
            FileTensor("y", tuple(map(int, shape))),
        ]
        options = {
            "StrideH": self.strides[0], "StrideW": self.strides[1],
            "Padding": self.padding, "FusedActivationFunction": self.activation,
        }  # fmt: skip
        reads = (2, 1, 0, 3) if self.bias else (2, 1, 0)
        operator = FileOperator(
            "TRANSPOSE_CONV", reads, (4,), "TransposeConvOptions", options
        )
        return write(tensors, [operator], [0], [4])

    def samples(self) -> list[dict[str, Array]]:
        """Numbers of both signs, of one, all 0."""
        x = np.random.default_rng(self.x).normal(0.5, 1.5, self.x).astype(np.float32)
        return [{"x": v} for v in (x, np.abs(x) + 1, 0 * x)]


FILES = {
    "same": Transposed((1, 5, 5, 8), (6, 3, 3, 8)),
    "valid": Transposed((1, 4, 5, 8), (6, 5, 3, 8), (3, 2), _VALID, each=True),
    "images": Transposed(
        (2, 5, 4, 3), (4, 4, 4, 3), each=True, bias=True, activation=_RELU6
    ),
    "gaps": Transposed((1, 3, 3, 4), (5, 2, 2, 4), (3, 3), bias=True),
    "row": Transposed((1, 1, 7, 4), (6, 1, 4, 4), (1, 2)),
    "pixel": Transposed((1, 1, 1, 4), (5, 3, 3, 4), padding=_VALID),
    "plain": Transposed((1, 4, 4, 5), (1, 3, 3, 5), (1, 1), bias=True),
}


@pytest.mark.parametrize("name", FILES)
def test_it_is_near_litert(name: str) -> None:
    """All back ends have the bits of the meaning, on cores also with their kernels."""
    one = FILES[name]
    data, samples = one.data(), one.samples()
    model = pybuild.load(data)
    nets = [model.build().host("llvm")]
    if name == "images":
        targets = ("cortex-m4", "cortex-m55")
        nets += [model.build(target=target).host("llvm") for target in targets]
    for sample, theirs in zip(samples, run_litert(data, samples), strict=True):
        meant = interpret(model.graph, sample)["y"]
        reach = float(np.abs(theirs["y"]).max())
        np.testing.assert_allclose(meant, theirs["y"], 0, NEAR * reach)
        for net in nets:
            (made,) = net.run(**sample).values()
            np.testing.assert_array_equal(made, meant)


def test_weights_are_bytes() -> None:
    """And tables: of each phase and output a total, of each output a scale."""
    one = FILES["same"]
    library = pybuild.load(one.data()).build(target="cortex-m4")
    size = int(np.prod(one.w))
    assert library.report.flash.weights <= size + 4 * 4 * one.w[0] + 8


def test_float_by_wish() -> None:
    """--hybrid float: what the weights mean."""
    one = FILES["same"]
    model, sample = pybuild.load(one.data(), hybrid="float"), one.samples()[0]
    assert model.graph.nodes[-1].op == "conv2d"
    made = interpret(model.graph, sample)["y"]
    (theirs,) = run_litert(one.data(), [sample])
    np.testing.assert_allclose(made, theirs["y"], 0, 0.3)


def test_scales_of_another_axis() -> None:
    one = replace(FILES["same"], each=True, axis=3)
    with pytest.raises(BuildError, match=r"scales along axis 3.*each output: axis 0"):
        pybuild.load(one.data())


def test_sums_for_another_reader() -> None:
    """A phase has totals of its own weights: what scales its sums must be there."""
    graph = pybuild.load(FILES["same"].data()).graph
    sums = graph.nodes[-2]
    how = {"fn": "cast", "to": "float32"}
    cast = Node("map", "cast", (sums.output,), ("real",), how)
    real = Tensor("real", graph.tensor(sums.output).shape, graph.tensor("y").dtype)
    changed = replace(
        graph,
        nodes=(*graph.nodes, cast),
        tensors={**graph.tensors, "real": real},
        outputs=("y", "real"),
    )
    with pytest.raises(BuildError, match="are for one scale_sums alone"):
        split_phases(changed)
    ordinary = replace(sums, attrs={"pads": (0, 0, 0, 0)})
    with pytest.raises(BuildError, match="zero points, which scale_sums takes off"):
        infer_conv2d(ordinary, graph)
