"""Kernels that differ in weights alone are written once, and know none of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pybuild.ir.loop import INT8, Func, const
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.once import bare, once
from pybuild.kernels.base.window import Window
from pybuild.kernels.dsp.conv_code import kernel
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.layers.conv import Layer

ENDING = Affine(9, 0, np.arange(8), np.arange(8) + 77, -128, 127)
LAYER = Layer(Window(5, 5, 16, 8, 1, 1), ENDING, 3)


def test_layers_that_differ_in_arrays_have_one_kernel() -> None:
    other = replace(LAYER, epilogue=replace(ENDING, offsets=np.arange(8) * 5))
    assert kernel(LAYER).kernel is kernel(other).kernel
    assert kernel(LAYER).finish(True) is kernel(other).finish(True)


@pytest.mark.parametrize(
    "change",
    [
        {"window": replace(LAYER.window, width=7, out_width=7)},
        {"x_zero": 4},
        {"pixels": 1},
        {"epilogue": replace(ENDING, shift=10)},
        {"epilogue": replace(ENDING, below=np.arange(8))},
        {"epilogue": replace(ENDING, low=0)},
        {"epilogue": replace(ENDING, joint=5)},
    ],
)
def test_all_else_tells_them_apart(change: dict[str, Any]) -> None:
    assert kernel(replace(LAYER, **change)).kernel is not kernel(LAYER).kernel


def test_code_that_reads_an_array_is_an_error() -> None:
    assert bare(LAYER, {}).epilogue.offsets == ()

    @once
    def wrong(layer: Layer) -> Builder:
        k = Builder("wrong")
        k.arg("offset", int(layer.epilogue.offsets[0]))
        return k

    with pytest.raises(IndexError):
        wrong(LAYER)


def with_factor(factor: int) -> Layer:
    return replace(LAYER, epilogue=replace(ENDING, joint=factor))


def test_layers_that_differ_in_a_factor_have_one_kernel_and_their_own_number() -> None:
    one, other = kernel(with_factor(1 << 20)), kernel(with_factor(12345))
    assert one.kernel is other.kernel
    args = [arg.name for arg in one.finish(True).args]
    assert len(args) == len(one.values)
    at = args.index("factor")
    assert (one.values[at], other.values[at]) == (1 << 20, 12345)
    assert one.values[:at] == other.values[:at]
    assert one.values[at + 1 :] == other.values[at + 1 :]


def test_code_that_computes_with_an_argument_is_an_error() -> None:
    @once
    def wrong(layer: Layer) -> Builder:
        k = Builder("wrong")
        assert isinstance(layer.epilogue, Affine)
        assert layer.epilogue.joint is not None
        k.arg("twice", 2 * layer.epilogue.joint)
        return k

    with pytest.raises(TypeError):
        wrong(with_factor(3))


def test_a_kernel_is_finished_in_one_way() -> None:
    k = Builder("empty")
    assert k.finish() is k.finish()
    with pytest.raises(AssertionError):
        k.finish(in_place=True)


def test_equal_kernels_of_several_builders_are_one() -> None:
    """Who compares or prices kernels sees it at once; another body is another."""

    def made(value: int) -> Func:
        k = Builder("same_name")
        y = k.row("y", 0, INT8, writable=True)
        k.store(y, 0, const(value, INT8))
        return k.finish()

    assert made(1) is made(1)
    assert made(1) is not made(2) and made(1) != made(2)
