"""What transformers in integers have that other nets have not, on each emulated core:
products of two computed tensors, norms, int16 of float32; the same bits as numpy's by
both back ends."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import pybuild
from pybuild.dtype import DType
from tests.boards.devices import device
from tests.boards.side_by_side import built, must_equal_numpy
from tests.kernels.kernel_cases import (
    FLOAT32,
    Case,
    case,
    computed_norm,
    computed_product,
    tensor,
)

INT8, INT16 = DType.INT8, DType.INT16
# its core, and what kernels of a product of int8 and of one of int16 have in their name
BOARDS = {
    "microbit": ("cortex-m0", "s8_", "s16_block32"),
    "mps2-an385": ("cortex-m3", "s8_", "s16_block"),
    "mps2-an386": ("cortex-m4", "s8_dsp", "s16_dsp"),
    "mps3-an547": ("cortex-m55", "s8_mve", "s16_mve"),
    "riscv32-virt": ("rv32imc", "s8_", "s16_block32"),
}
# products in a sum: whole vectors and words, what leaves a rest in them
DEPTHS = (8, 17, 31, 64)


@functools.cache
def cases() -> dict[str, Case]:
    found = {}
    for dtype in (INT8, INT16):
        for depth in DEPTHS:
            found[f"product_{dtype.value}_{depth}_"] = computed_product(
                dtype, (5, depth, 7), 2
            )
        for centred in (True, False):
            for count in (7, 48):
                name = f"norm_{dtype.value}_{count}_{'centred' * centred}_"
                found[name] = computed_norm(dtype, (3, 4, count), centred)
    for dtype, depth in ((INT8, 17), (INT16, 9), (FLOAT32, 5)):
        found[f"product_{dtype.value}_transposed_"] = computed_product(
            dtype, (5, depth, 6), transposed=True
        )
    found["product_float32_"] = computed_product(FLOAT32, (5, 5, 6))
    for name in found:
        if "float32" in name:  # sums of whole numbers are the same in any order
            for array in found[name].arrays.values():
                np.rint(array, out=array)
    for rule in ("double", "even"):
        x, y = tensor((2, 32), FLOAT32), tensor((), INT16, 3e-4)
        found[f"quantize_{rule}_"] = case("quantize", (x,), y, rounding=rule)
    # a ratio of scales for which the high half of a product is too short
    found["product_steep_"] = computed_product(INT16, (5, 8, 7), 2, 2.0**-21)
    return found


@functools.cache
def library(target: str, emit: str) -> pybuild.Library:
    return built(cases(), target, emit)


# each core always by a back end, and vectors by both
ALWAYS = {
    "microbit": ("obj",),
    "mps2-an385": ("c",),
    "mps2-an386": ("c",),
    "mps3-an547": ("c", "obj"),
    "riscv32-virt": ("obj",),
}
WAYS = [
    pytest.param(name, emit, marks=() if emit in ALWAYS[name] else pytest.mark.sweep)
    for name in BOARDS
    for emit in ("c", "obj")
]


@pytest.mark.parametrize(("name", "emit"), WAYS)
def test_equal_numpy(name: str, emit: str) -> None:
    target, *families = BOARDS[name]
    made = library(target, emit)
    names = [s.candidate.func.name for s in made.plan.steps if s.candidate.func]
    for family in families:
        assert any(f"matmul_{family}" in name for name in names), names
    must_equal_numpy(device(name, "gcc"), made, cases())
