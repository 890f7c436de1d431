"""Single layers on a Cortex-M4, as a table: what the kernels take that every core may
have, and those that this core gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pybuild.dtype import DType
from pybuild.graph import Quant
from pybuild.model import Model
from pybuild.run.board.bench import RUNTIME, bench_on_board
from pybuild.run.board.device import Device, open_device
from tests.boards.devices import CORES
from tests.costs import Row, Table
from tests.unit.kernel_cases import INT8, Case, case, tensor

CORE = "cortex-m4"
INT16 = DType.INT16


def _window(
    op: str, x: Sequence[int], w: tuple[int, ...], dtype: DType = INT8, groups: int = 1
) -> Case:
    """A layer with weights, of stride 1, padded so that pixels stay as many."""
    chance = np.random.default_rng(1)
    outs, axis, pad = (w[0], 0, w[1]) if op == "conv2d" else (w[-1], 2, w[0])
    whole = dtype is INT8
    bias = chance.integers(-3000, 3000, outs)
    inputs = (
        tensor(x, dtype, 0.05, 3 if whole else 0),
        (w, INT8, Quant((0.01,) * outs, (0,) * outs, axis)),
        ((outs,), DType.INT32 if whole else DType.INT64, None),
    )
    attrs = {"groups": groups} if op == "conv2d" else {}
    values = {
        1: chance.integers(-127, 128, w).astype(np.int8),
        2: bias.astype(np.int32 if whole else np.int64),
    }
    return case(op, inputs, tensor((), dtype, 0.3, -5 if whole else 0), values,
                rounding="double" if whole else "wide", strides=(1, 1),
                pads=(pad // 2,) * 4, dilations=(1, 1), **attrs)  # fmt: skip


def _layers() -> Iterator[tuple[str, Case]]:
    for groups in (4, 16):
        x, w = (1, 12, 12, 32), (32, 3, 3, 32 // groups)
        yield f"3x3, 32 to 32 in {groups} groups", _window("conv2d", x, w, INT8, groups)
    yield "3x3, 1 to 8", _window("conv2d", (1, 24, 24, 1), (8, 3, 3, 1))
    for channels, outs in ((1, 8), (2, 8), (8, 32)):
        x, w = (1, 24, 24, channels), (3, 3, outs)
        yield f"depthwise 3x3, {channels} to {outs}", _window("depthwise_conv2d", x, w)
    x, w = (1, 12, 12, 32), (32, 3, 3, 8)
    yield "16x8: 3x3, 32 to 32 in 4 groups", _window("conv2d", x, w, INT16, 4)
    for channels, outs in ((1, 8), (8, 32)):
        x, w = (1, 24, 24, channels), (3, 3, outs)
        made = _window("depthwise_conv2d", x, w, INT16)
        yield f"16x8: depthwise 3x3, {channels} to {outs}", made


def _elements() -> Iterator[tuple[str, Case]]:
    shape = (1, 12, 12, 32)
    sides = tensor(shape, INT8, 0.0213, 3), tensor(shape, INT8, 0.0471, -128)
    for op, clamp in (("add", None), ("add", 0.0), ("mul", None)):
        name = f"{op}, 4,608 elements" + (", ReLU" if clamp is not None else "")
        yield name, case(op, sides, tensor((), INT8, 0.0633, -5), rounding="double",
                         clamp=(clamp, None))  # fmt: skip
    wide = (sides[0], tensor((32,), INT8, 0.0471, -128))
    yield "mul by 32 constants, 4,608 elements", case(
        "mul", wide, tensor((), INT8, 0.0633, -5), {1: None}, rounding="double",
        clamp=(None, None),
    )  # fmt: skip
    image = (tensor((1, 8, 8, 64), INT8, 0.05, -20),)
    yield "mean of 64 pixels, 64 channels", case(
        "mean", image, tensor((), INT8, 0.02, 5), axes=(1, 2), keepdims=True,
        rounding="double",
    )  # fmt: skip


def single_layers() -> Table:
    device = open_device(CORES[CORE], "gcc", "qemu", CORE)
    rows = [_figures(name, one, device) for name, one in (*_layers(), *_elements())]
    says = (
        f"One layer on a {CORE}, C by gcc: instructions of its kernel, without the "
        "runtime's. Plain: of the kernels for any core (`--target generic`); a ratio "
        "below 1 is fewer than theirs."
    )
    columns = ("layer", "plain", "with DSP", "ratio", "per output", "kernel")
    return Table("Single layers", says, columns, tuple(rows))


def _figures(name: str, one: Case, device: Device) -> Row:
    spent = []
    for target in ("generic", CORE):
        # as it is: its rules of rounding are there already
        lowered = {("litert", (), "planned"): one.graph}
        made = Model("layer.test", one.graph, "litert", "0" * 64, _lowered=lowered)
        library = made.build(name="layer", target=target)
        layers = bench_on_board(device, library).layers
        spent.append(sum(row.instructions for row in layers if row.name != RUNTIME))
    (step,) = library.plan.steps
    assert step.candidate.func is not None
    each = spent[1] / one.graph.tensor("y").size
    ratio = f"{spent[1] / spent[0]:.2f}"
    return (name, *spent, ratio, f"{each:.1f}", step.candidate.func.name)
