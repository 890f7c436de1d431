"""BATCH_MATMUL of float32 by int8: LiteRT's bits, weights of a byte."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ops.interpret import interpret
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write


@dataclass(frozen=True)
class Product:
    """One operator; shapes of its operands as the file has them.

    each      the second has a scale for each column of the product
    axis      that of its scales
    computed  the second is an input, too
    """

    x: tuple[int, ...]
    w: tuple[int, ...]
    turned: tuple[bool, bool] = (False, False)
    asymmetric: bool = False
    each: bool = False
    axis: int = 0
    computed: bool = False
    zero: int = 0

    @property
    def weights(self) -> Array:
        rng = np.random.default_rng(len(self.w))
        return rng.integers(-127, 128, self.w).astype(np.int8)

    def data(self) -> bytes:
        rng = np.random.default_rng(self.w)
        count = self.w[self.axis] if self.each else 1
        scales = tuple(map(float, rng.uniform(0.004, 0.02, count).astype(np.float32)))
        quant = scales, (self.zero,) * count, self.axis
        held = None if self.computed else self.weights
        options = {
            "AdjX": self.turned[0], "AdjY": self.turned[1],
            "AsymmetricQuantizeInputs": self.asymmetric,
        }  # fmt: skip
        operator = FileOperator(
            "BATCH_MATMUL", (0, 1), (2,), "BatchMatMulOptions", options
        )
        tensors = [
            FileTensor("x", self.x),
            FileTensor("w", self.w, "INT8", held, *quant),
            FileTensor("y", ()),
        ]
        return write(tensors, [operator], [0, 1] if self.computed else [0], [2])

    def samples(self) -> list[dict[str, Array]]:
        """Numbers of both signs, of one, all 0."""
        x = np.random.default_rng(self.x).normal(0.3, 1.5, self.x).astype(np.float32)
        more = {"w": self.weights} if self.computed else {}
        return [{"x": v, **more} for v in (x, np.abs(x) + 1, 0 * x)]


_Y = (False, True)
PRODUCTS = {
    "matrices": Product((3, 16), (16, 7)),
    "rows_of_images": Product((2, 5, 16), (16, 7)),
    "single": Product((1, 5, 16), (1, 16, 7), asymmetric=True),
    "adj_x": Product((2, 16, 5), (16, 7), (True, False)),
    "adj_y": Product((5, 16), (7, 16), _Y),
    "each": Product((3, 16), (16, 7), each=True, axis=1),
    "each_zero": Product((3, 16), (7, 16), _Y, asymmetric=True, each=True),
    "stack": Product((2, 5, 16), (2, 16, 7)),
    "stack_zero": Product(
        (2, 3, 16), (2, 7, 16), _Y, asymmetric=True, each=True, axis=1
    ),
    "stack_of_one": Product((5, 16), (2, 16, 7)),
    "two_axes": Product((1, 3, 5, 16), (2, 1, 7, 16), _Y),
    "computed": Product((2, 5, 16), (2, 16, 7), computed=True),
    "computed_zero": Product((2, 5, 16), (7, 16), _Y, asymmetric=True, computed=True),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_meaning_and_llvm_equal_litert(name: str) -> None:
    one = PRODUCTS[name]
    data, samples = one.data(), one.samples()
    model = pybuild.load(data)
    net = model.build().host("llvm")
    for sample, theirs in zip(samples, run_litert(data, samples), strict=True):
        meant = interpret(model.graph, sample)["y"]
        np.testing.assert_array_equal(meant, theirs["y"])
        (made,) = net.run(**sample).values()
        np.testing.assert_array_equal(made, theirs["y"])


@pytest.mark.parametrize("name", ["rows_of_images", "each_zero", "stack"])
def test_weights_are_bytes(name: str) -> None:
    """And tables: of each column a scale and a total, of a product limits."""
    one = PRODUCTS[name]
    library = pybuild.load(one.data()).build(target="cortex-m4")
    size, columns = one.weights.size, 7
    assert library.report.flash.weights <= 1.2 * size + 12 * columns


def test_float_by_wish() -> None:
    """--hybrid float: what the weights mean."""
    one = PRODUCTS["stack"]
    model = pybuild.load(one.data(), hybrid="float")
    assert [node.op for node in model.lower().nodes] == ["matmul"]
    sample = one.samples()[0]
    made = interpret(model.graph, sample)["y"]
    (theirs,) = run_litert(one.data(), [sample])
    np.testing.assert_allclose(made, theirs["y"], 0, 0.1)


REFUSED = {
    "depth": (Product((3, 15), (16, 7)), r"\[3, 15\] by \[16, 7\]"),
    "stacks": (Product((3, 5, 16), (2, 16, 7)), r"\[3, 5, 16\] by \[2, 16, 7\]"),
    "vector": (Product((3, 16), (16,)), r"\[16\] is not a matrix"),
    "axis": (
        Product((3, 16), (16, 7), each=True),
        r"'w' has scales along axis 0\. Hint: one scale, or .*: axis 1",
    ),
    "computed": (
        Product((3, 16), (16, 7), computed=True, zero=3),
        "'w' must have one scale and no zero point",
    ),
    "computed_depth": (
        Product((3, 15), (16, 7), computed=True), r"\[3, 15\] by \[16, 7\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    one, said = REFUSED[name]
    with pytest.raises(BuildError, match=said):
        pybuild.load(one.data())
