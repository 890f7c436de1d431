"""Layers that move, compare, pool and look up, on the emulated cores whose instructions
they are made of: pairs of an M4, vectors of an M55; the same bits as numpy's by both
back ends."""

from __future__ import annotations

import functools

import pytest

import pybuild
from pybuild.dtype import DType
from pybuild.ir.graph import Quant
from tests.boards.devices import device
from tests.boards.side_by_side import built, must_equal_numpy
from tests.kernels.kernel_cases import Case, case, tensor

INT8, INT16 = DType.INT8, DType.INT16
UNIT = (), INT16, Quant((2.0**-15,), (0,))
# its core, and what is in the names of kernels
BOARDS = {
    "mps2-an386": ("cortex-m4", ("maximum_s8_dsp", "minimum_s16_dsp", "pad_border",
                                 "words_row", "_dsp4", "softmax_s16_dsp")),
    "mps3-an547": ("cortex-m55", ("maximum_s8_mve16", "minimum_s16_mve8", "mve4",
                                  "pad_border", "halves_row", "pool_mve_s16_2x2",
                                  "_far_mve", "softmax_s16_mve")),
}  # fmt: skip


@functools.cache
def cases() -> dict[str, Case]:
    found = {}
    for fn, dtype in (("maximum", INT8), ("minimum", INT16), ("minimum", INT8),
                      ("maximum", INT16)):  # fmt: skip
        for count, other in ((70, 70), (70, 1), (5, 5)):
            inputs = [tensor((2, n), dtype) for n in (count, other)]
            found[f"{fn}_{dtype.value}_{count}_{other}_"] = case("map", inputs, fn=fn)
    for dtype in (INT8, INT16):
        for shape in ((1, 4, 5, 3), (1, 3, 4, 40)):
            pads = ((0, 0), (1, 1), (1, 2), (0, 0))
            found[f"pad_{dtype.value}_{shape[3]}_"] = case(
                "pad", (tensor(shape, dtype),), pads=pads, value=0.0
            )
        sizes = (tensor((2, 3, n), dtype) for n in (24, 12, 5, 70))
        found[f"concat_{dtype.value}_"] = case("concat", tuple(sizes), axis=2)
        source = tensor((1, 6, 6, 12), dtype, 0.001)
        window = {"kernel": (2, 2), "strides": (2, 2)}
        for op in ("max_pool2d", "avg_pool2d"):
            found[f"{op}_{dtype.value}_"] = case(op, (source,), **window)
    for scale in (2.0**-11, 0.000337):
        for op in ("logistic", "tanh"):
            found[f"{op}_{scale}_"] = case(op, (tensor((1, 203), INT16, scale),), UNIT)
        found[f"softmax_{scale}_"] = case(
            "softmax", (tensor((3, 50), INT16, scale),), UNIT, axis=1, beta=1.0
        )
    return {name.replace(".", "_"): one for name, one in found.items()}


@functools.cache
def library(target: str, emit: str) -> pybuild.Library:
    return built(cases(), target, emit)


WAYS = [
    ("mps2-an386", "c"), ("mps3-an547", "c"), ("mps3-an547", "obj"),
    pytest.param("mps2-an386", "obj", marks=pytest.mark.sweep),
]  # fmt: skip


@pytest.mark.parametrize(("name", "emit"), WAYS)
def test_equal_numpy(name: str, emit: str) -> None:
    target, families = BOARDS[name]
    made = library(target, emit)
    names = " ".join(s.candidate.func.name for s in made.plan.steps if s.candidate.func)
    for family in families:
        assert family in names, names
    must_equal_numpy(device(name, "gcc"), made, cases())
