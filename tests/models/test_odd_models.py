"""Small odd ONNX models, where shapes, names and memory meet at corners: both back
ends give what ONNX Runtime gives, with inputs kept or not, whatever the arena held."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from tests.emit.test_generated_c import CLEAN, shell
from tests.frontends.onnx.models import NodeSpec, expected, model
from tests.toolchains import require

Arrays = Mapping[str, np.ndarray]
_CHANCE = np.random.default_rng(8)


@dataclass(frozen=True)
class Odd:
    """A model; `given` are the values of its inputs."""

    nodes: Sequence[NodeSpec]
    given: Arrays
    outputs: str
    constants: Arrays = field(default_factory=dict)


def values(*shape: int) -> np.ndarray:
    return _CHANCE.normal(0, 1, shape).astype(np.float32)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def op(kind: str, reads: str, makes: str, **attrs: Any) -> NodeSpec:
    return kind, reads.split(), [makes], attrs


ODD = {
    "outputs_used_inside": Odd(
        [
            op("Add", "a b", "s"),
            op("Relu", "s", "y"),
            op("Mul", "y s", "z"),
            op("Sub", "z y", "w"),
        ],
        {"a": values(1, 4), "b": values(1, 4)},
        "y w",
    ),
    "reshapes_to_outputs": Odd(
        [
            op("Reshape", "x one", "a"),
            op("Reshape", "a two", "b"),
            op("Relu", "a", "c"),
        ],
        {"x": values(2, 6)},
        "a b c",
        {"one": ints(3, 4), "two": ints(12)},
    ),
    "input_as_two_outputs": Odd(
        [op("Identity", "x", "a"), op("Identity", "x", "b")], {"x": values(2, 6)}, "a b"
    ),
    "constant_output": Odd(
        [op("Relu", "x", "y"), op("Add", "k k", "z"), op("Add", "x z", "w")],
        {"x": values(2, 4)},
        "y z w",
        {"k": values(4)},
    ),
    "input_not_read": Odd(
        [op("Relu", "x", "y")], {"x": values(2, 4), "unused": values(3)}, "y"
    ),
    "concat_of_itself": Odd(
        [
            op("Relu", "x", "r"),
            op("Concat", "r r", "a", axis=0),
            op("Concat", "a r a", "y", axis=0),
        ],
        {"x": values(2, 3, 4)},
        "y",
    ),
    "slice_concat_backwards": Odd(
        [
            op("Slice", "x one three axis1", "s"),
            op("Concat", "s x", "a", axis=1),
            op("Slice", "a last before axis2 back", "y"),
        ],
        {"x": values(1, 4, 6)},
        "y",
        {
            "one": ints(1),
            "three": ints(3),
            "axis1": ints(1),
            "last": ints(-1),
            "before": ints(-100),
            "axis2": ints(2),
            "back": ints(-2),
        },
    ),
    "residual_of_the_input": Odd(
        [op("Conv", "x w", "c", pads=[1, 1, 1, 1]), op("Add", "c x", "y")],
        {"x": values(1, 3, 5, 6)},
        "y",
        {"w": values(3, 3, 3, 3)},
    ),
    "transposes_at_both_ends": Odd(
        [
            op("Transpose", "x", "t", perm=[0, 3, 1, 2]),
            op("Conv", "t w", "c", strides=[2, 1]),
            op("Transpose", "c", "y", perm=[0, 2, 3, 1]),
        ],
        {"x": values(2, 7, 6, 3)},
        "y",
        {"w": values(5, 3, 3, 2)},
    ),
    "conv_1d_dilated": Odd(
        [
            op("Conv", "x w b", "c", pads=[2, 1], dilations=[2], strides=[3]),
            op("Relu", "c", "y"),
        ],
        {"x": values(2, 3, 17)},
        "y",
        {"w": values(5, 3, 3), "b": values(5)},
    ),
    "groups_of_three_batch_of_three": Odd(
        [op("Conv", "x w b", "y", group=3, pads=[0, 1, 2, 1])],
        {"x": values(3, 6, 5, 5)},
        "y",
        {"w": values(9, 2, 3, 3), "b": values(9)},
    ),
    "depthwise_times_three_dilated": Odd(
        [op("Conv", "x w", "y", group=3, dilations=[2, 3], pads=[2, 3, 2, 3])],
        {"x": values(3, 3, 7, 8)},
        "y",
        {"w": values(9, 1, 3, 3)},
    ),
    "dilated_along_one_axis": Odd(
        [
            op("Conv", "x tall", "a", group=4, dilations=[3, 1]),
            op("Conv", "x wide", "b", group=2, dilations=[3, 2], pads=[0, 2, 0, 2]),
            op("Conv", "x whole", "c", dilations=[1, 3]),
        ],
        {"x": values(1, 4, 9, 9)},
        "a b c",
        {
            "tall": values(4, 1, 3, 1),
            "wide": values(6, 2, 1, 3),
            "whole": values(3, 4, 3, 3),
        },
    ),
    "kernel_larger_than_the_image": Odd(
        [op("Conv", "x w", "y", pads=[4, 4, 4, 4])],
        {"x": values(1, 2, 3, 3)},
        "y",
        {"w": values(3, 2, 7, 7)},
    ),
    "pools_with_odd_strides": Odd(
        [
            op(
                "AveragePool", "x", "a", kernel_shape=[3, 2], strides=[3, 2],
                pads=[1, 0, 2, 1],
            ),
            op(
                "MaxPool", "x", "m", kernel_shape=[3, 3], strides=[2, 3],
                pads=[1, 1, 0, 2],
            ),
            op(
                "AveragePool", "x", "c", kernel_shape=[3, 2], strides=[2, 1],
                pads=[1, 1, 1, 0], count_include_pad=1,
            ),
            op("MaxPool", "x", "n", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        ],
        {"x": values(2, 3, 8, 7)},
        "a m c n",
    ),
    "softmax_over_channels": Odd(
        [op("Conv", "x w", "c"), op("Softmax", "c", "y", axis=1)],
        {"x": values(2, 2, 3, 4)},
        "y",
        {"w": values(5, 2, 1, 1)},
    ),
    "means_over_batch_and_apart": Odd(
        [
            op("ReduceMean", "x", "y", axes=[0], keepdims=0),
            op("ReduceMean", "x", "z", axes=[1, 3], keepdims=1),
            op("ReduceMean", "x", "all", keepdims=0),
            op("Mul", "all all", "square"),
        ],
        {"x": values(3, 4, 5, 2)},
        "y z square",
    ),
    "broadcast_on_both_sides": Odd(
        [op("Add", "a b", "s"), op("Mul", "s c", "y"), op("Sub", "y d", "z")],
        {"a": values(3, 1, 4), "b": values(1, 5, 1), "d": values(2, 1, 3, 5, 1)},
        "y z",
        {"c": values(4)},
    ),
    "rank_6": Odd(
        [op("Transpose", "x", "y", perm=[4, 2, 5, 0, 3, 1]), op("Relu", "x", "z")],
        {"x": values(2, 3, 2, 2, 3, 2)},
        "y z",
    ),
    "pad_conv_slice": Odd(
        [
            op("Pad", "x pads", "p"),
            op("Conv", "p w", "c"),
            op("Slice", "c begin end axes", "y"),
            op("Pad", "y batch fill", "z"),
        ],
        {"x": values(1, 2, 6, 6)},
        "y z",
        {
            "pads": ints(0, 0, 1, 2, 0, 0, 2, -1),
            "w": values(3, 2, 3, 3),
            "begin": ints(1, 1),
            "end": ints(5, 3),
            "axes": ints(2, 3),
            "batch": ints(1, 0, 0, 1, 0, 0, 2, 0),
            "fill": np.array(2.5, np.float32),
        },
    ),
    "batch_norm_first": Odd(
        [
            op("BatchNormalization", "x s b m v", "n"),
            op("Conv", "n w", "y", pads=[1, 1, 1, 1]),
        ],
        {"x": values(2, 3, 4, 4)},
        "y",
        {
            **{name: values(3) for name in "sbm"},
            "v": np.abs(values(3)),
            "w": values(4, 3, 3, 3),
        },
    ),
    "flatten_of_channels_first": Odd(
        [
            op("Conv", "x w", "c"),
            op("Relu", "c", "r"),
            op("Flatten", "r", "f"),
            op("Gemm", "f g", "y", transB=1),
        ],
        {"x": values(2, 2, 4, 5)},
        "y r",
        {"w": values(3, 2, 2, 2), "g": values(4, 36)},
    ),
    "names_that_clash_with_constants": Odd(
        [
            op("Conv", "x w b", "n0_weights", pads=[1, 1, 1, 1]),
            op("Relu", "n0_weights", "n0_bias"),
            op("Relu", "n0_bias", "pad_0"),
        ],
        {"x": values(1, 2, 3, 3)},
        "n0_bias pad_0",
        {"w": values(3, 2, 3, 3), "b": values(3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_both_back_ends_equal_onnx_runtime(name: str, tmp_path: Path) -> None:
    odd = ODD[name]
    data = model(odd.nodes, odd.given, odd.outputs.split(), odd.constants)
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(data)
    want = expected(data, odd.given)
    loaded = pybuild.load(path)
    for keep, optimise, backend in (
        ("reuse", "balanced", "llvm"),
        ("keep", "speed", "llvm"),
        ("reuse", "balanced", "c"),
    ):
        net = loaded.build(input=keep, optimise=optimise).host(backend)
        for poison in (0x00, 0x7F):
            net.arena[:] = poison
            net.run(**odd.given)
            _same(net.outputs(), want)


def _same(have: Arrays, want: Arrays) -> None:
    assert set(have) == set(want)
    for name, value in want.items():
        assert have[name].shape == value.shape
        most = 1e-5 * max(1.0, float(np.abs(value).max(initial=0)))
        np.testing.assert_allclose(have[name], value, rtol=0, atol=most)


def _each_once() -> list[Any]:
    """Each model with one of both, in turn; with the other in --all."""
    turns = itertools.cycle(["balanced", "speed"])
    first = dict(zip(ODD, turns, strict=False))
    return [
        pytest.param(
            name, how, id=f"{name}-{how}",
            marks=[] if how == first[name] else [pytest.mark.sweep],
        )
        for name in ODD
        for how in ("balanced", "speed")
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "optimise"), _each_once())
def test_the_c_has_no_warning(name: str, optimise: str, tmp_path: Path) -> None:
    require("gcc")
    odd = ODD[name]
    data = model(odd.nodes, odd.given, odd.outputs.split(), odd.constants)
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(data)
    tree = tmp_path / "t"
    pybuild.load(path).build(tree, optimise=optimise)
    includes = [f"-I{tree}", f"-I{tree / 'crt' / 'include'}"]
    shell("gcc", *CLEAN, "-fsyntax-only", *includes, *sorted(tree.glob("*.c")))
