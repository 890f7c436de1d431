"""Single layers on a Cortex-M4, a Cortex-M55 and a Cortex-M0, as tables: what the
kernels take that every core may have, and those that this core gets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from unittest.mock import patch

from pybuild.boards.device import open_device
from pybuild.dtype import DType
from pybuild.model import Model
from pybuild.targets.target import TARGETS
from tests.bench.costs import Row, Table
from tests.boards.devices import CORES
from tests.figures.counted import Counted, counted, ready
from tests.figures.store import Ready, store
from tests.kernels.kernel_cases import FLOAT32, INT8, Case, case, tensor, weighted_case

CORE, VECTORS, LEAST = "cortex-m4", "cortex-m55", "cortex-m0"
INT16 = DType.INT16


def _layers() -> Iterator[tuple[str, Case]]:
    for groups in (4, 16):
        x, w = (1, 12, 12, 32), (32, 3, 3, 32 // groups)
        yield (
            f"3x3, 32 to 32 in {groups} groups",
            weighted_case("conv2d", x, w, INT8, groups),
        )
    for side, channels in ((1, 16), (3, 8)):
        x, w = (1, 12, 12, channels), (1, side, side, channels)
        yield f"{side}x{side}, {channels} to 1", weighted_case("conv2d", x, w)
    for channels, outs in ((1, 8), (3, 3), (3, 8)):
        x, w = (1, 24, 24, channels), (outs, 1, 1, channels)
        yield f"1x1, {channels} to {outs}", weighted_case("conv2d", x, w)
    yield "dense, 3 to 16", weighted_case("conv2d", (1, 1, 1, 3), (16, 1, 1, 3))
    yield "3x3, 1 to 8", weighted_case("conv2d", (1, 24, 24, 1), (8, 3, 3, 1))
    for channels, outs in ((1, 8), (2, 8), (3, 3), (8, 32)):
        x, w = (1, 24, 24, channels), (3, 3, outs)
        yield (
            f"depthwise 3x3, {channels} to {outs}",
            weighted_case("depthwise_conv2d", x, w),
        )
    x, w = (1, 12, 12, 32), (32, 3, 3, 8)
    yield "16x8: 3x3, 32 to 32 in 4 groups", weighted_case("conv2d", x, w, INT16, 4)
    for channels, outs in ((1, 8), (8, 32)):
        x, w = (1, 24, 24, channels), (3, 3, outs)
        made = weighted_case("depthwise_conv2d", x, w, INT16)
        yield f"16x8: depthwise 3x3, {channels} to {outs}", made


def _elements() -> Iterator[tuple[str, Case]]:
    shape = (1, 12, 12, 32)
    sides = tensor(shape, INT8, 0.0213, 3), tensor(shape, INT8, 0.0471, -128)
    for op, clamp in (("add", None), ("add", 0.0), ("mul", None)):
        name = f"{op}, 4,608 elements" + (", ReLU" if clamp is not None else "")
        yield name, case(op, sides, tensor((), INT8, 0.0633, -5), rounding="double",
                         clamp=(clamp, None))  # fmt: skip
    tied = tensor(shape, INT8, 0.25, 3), tensor(shape, INT8, 0.125, -4)
    for rule in ("double", "even"):
        yield f"add, tied scales, rounding {rule}", case(
            "add", tied, tensor((), INT8, 0.25, -5), rounding=rule,
            clamp=(None, None),
        )  # fmt: skip
    wide = (sides[0], tensor((32,), INT8, 0.0471, -128))
    yield "mul by 32 constants, 4,608 elements", case(
        "mul", wide, tensor((), INT8, 0.0633, -5), {1: None}, rounding="double",
        clamp=(None, None),
    )  # fmt: skip
    pixels = (tensor((1, 12, 12, 16), INT8, 0.05, 3),)
    yield "average 3x3, padded, 16", case(
        "avg_pool2d", pixels, kernel=(3, 3), strides=(1, 1), pads=(1,) * 4,
        rounding="double",
    )  # fmt: skip
    image = (tensor((1, 8, 8, 64), INT8, 0.05, -20),)
    yield "mean of 64 pixels, 64 channels", case(
        "mean", image, tensor((), INT8, 0.02, 5), axes=(1, 2), keepdims=True,
        rounding="double",
    )  # fmt: skip
    yield (
        "maximum 2x2, 32",
        case("max_pool2d", (tensor((1, 16, 16, 32)),), kernel=(2, 2), strides=(2, 2)),
    )
    yield from _moves()
    shares = tensor((), INT8, 1 / 256, -128)
    for shape in ((1, 12), (1, 1000), (64, 10)):
        yield f"softmax, {shape[0]} of {shape[1]:,}", case(
            "softmax", (tensor(shape, INT8, 0.1, 9),), shares, axis=1, beta=1.0,
            rounding="double",
        )  # fmt: skip


def _moves() -> Iterator[tuple[str, Case]]:
    image = tensor((1, 12, 12, 16))
    yield (
        "pad by 1, 16",
        case("pad", (image,), pads=((0, 0), (1, 1), (1, 1), (0, 0)), value=0.0),
    )
    yield (
        "16 channels beside 8",
        case("concat", (image, tensor((1, 12, 12, 8))), axis=3),
    )


def single_layers() -> Table:
    rows = _figures("single", CORE)
    says = (
        f"One layer on a {CORE}, C by gcc: instructions of its kernel, without the "
        "runtime's. Plain: of the kernels for any core (`--target generic`); a ratio "
        "below 1 is fewer than theirs."
    )
    columns = ("layer", "plain", "with DSP", "ratio", "per output", "kernel")
    return Table("Single layers", says, columns, rows)


def _without_products() -> Iterator[tuple[str, Case]]:
    for channels, outs in ((1, 8), (3, 3), (5, 5), (9, 9), (16, 16)):
        layer = weighted_case("conv2d", (1, 24, 24, channels), (outs, 1, 1, channels))
        yield f"1x1, {channels} to {outs}", layer
    yield "dense, 3 to 16", weighted_case("conv2d", (1, 1, 1, 3), (16, 1, 1, 3))
    x, w = (1, 24, 24, 3), (3, 3, 3)
    yield "depthwise 3x3, 3 to 3", weighted_case("depthwise_conv2d", x, w)
    numbers, bytes_ = tensor((1, 1000), FLOAT32), tensor((1, 1000), INT8, 0.05, 3)
    yield "quantize, 1,000", case("quantize", (numbers,), bytes_, rounding="double")
    yield "dequantize, 1,000", case("dequantize", (bytes_,), numbers)


def without_products() -> Table:
    rows = _figures("least", LEAST)
    says = f"Likewise on a {LEAST}, which has no high products and no floats."
    columns = ("layer", "plain", "its own", "ratio", "per output", "kernel")
    return Table("Single layers on the least core", says, columns, rows)


def _on_vectors() -> Iterator[tuple[str, Case]]:
    x, inside = tensor((1, 16, 16, 32), INT8, 0.05, 3), (1, 1, 1, 1)
    for side, stride, pads in ((2, 2, (0,) * 4), (3, 2, inside)):
        yield (
            f"maximum {side}x{side}, 32",
            case(
                "max_pool2d",
                (x,),
                kernel=(side, side),
                strides=(stride, stride),
                pads=pads,
            ),
        )
    for side, stride in ((2, 2), (8, 8)):
        yield f"average {side}x{side}, 32", case(
            "avg_pool2d", (x,), x, kernel=(side, side), strides=(stride, stride),
            rounding="double",
        )  # fmt: skip
    yield "average 3x3, padded, 32", case(
        "avg_pool2d", (x,), x, kernel=(3, 3), strides=(1, 1), pads=inside,
        rounding="double",
    )  # fmt: skip
    out = tensor((), INT8, 0.04, 2)
    mean = {"axes": (1, 2), "keepdims": False, "rounding": "double"}
    yield "mean of 64, 64", case("mean", (tensor((1, 8, 8, 64)),), out, **mean)
    other, out = tensor((1, 16, 16, 32), INT8, 0.07, -4), tensor((), INT8, 0.3, -28)
    for op in ("add", "mul"):
        yield f"{op}, 8192", case(op, (x, other), out, rounding="double")
    tied = tensor(x[0], INT8, 0.25, 3), tensor(x[0], INT8, 0.125, -4)
    yield "add, tied scales, 8192", case("add", tied, tied[0], rounding="double")
    scale = tensor((1, 1, 1, 32), INT8, 0.01, -128)
    yield "mul by channel, 32", case("mul", (x, scale), out, rounding="double")
    for side in (3, 5, 7):
        w = (side, side, 32)
        made = weighted_case("depthwise_conv2d", (1, 16, 16, 32), w)
        yield f"depthwise {side}x{side}, 32", made
    yield from _moves()
    for outs in (1, 3):
        layer = weighted_case("conv2d", (1, 12, 12, 16), (outs, 1, 1, 16))
        yield f"1x1, 16 to {outs}", layer
    x32, w = (1, 12, 12, 32), (32, 3, 3, 8)
    yield "3x3, 32 to 32 in 4 groups", weighted_case("conv2d", x32, w, INT8, 4)


def on_vectors() -> Table:
    each = [
        (name, back, emit)
        for name in _cases("vectors")
        for back, emit in (("C, gcc", "c"), ("LLVM", "obj"))
    ]
    plain, own = (
        _spent("vectors", [(name, VECTORS, how, emit) for name, _, emit in each])
        for how in ("without", VECTORS)
    )
    rows = [
        (name, back, *_row("vectors", name, before, after))
        for (name, back, _), before, after in zip(each, plain, own, strict=True)
    ]
    says = (
        f"Likewise on a {VECTORS}. Plain: of the kernels that it would have without "
        "those on vectors; LLVM makes vectors of them too. 1.00: these scales have no "
        "end of one product that equals the rule."
    )
    columns = (
        "layer", "back end", "plain", "with MVE", "ratio", "per output", "kernel"
    )  # fmt: skip
    return Table("Single layers on vectors", says, columns, tuple(rows))


SETS: dict[str, Callable[[], Iterable[tuple[str, Case]]]] = {
    "single": lambda: (*_layers(), *_elements()),
    "least": _without_products,
    "vectors": _on_vectors,
}
# name, core, target, emit
Way = tuple[str, str, str, str]


@functools.cache
def _cases(which: str) -> dict[str, Case]:
    return dict(SETS[which]())


def _figures(which: str, core: str) -> tuple[Row, ...]:
    names = list(_cases(which))
    plain, own = (
        _spent(which, [(name, core, target, "c") for name in names])
        for target in ("generic", core)
    )
    each = zip(names, plain, own, strict=True)
    return tuple((n, *_row(which, n, before, after)) for n, before, after in each)


def _row(which: str, name: str, plain: Counted, own: Counted) -> Row:
    before, spent = plain.kernel_instructions, own.kernel_instructions
    each = spent / _cases(which)[name].graph.tensor("y").size
    return before, spent, f"{spent / before:.2f}", f"{each:.1f}", own.kernels[0]


def _spent(which: str, ways: Sequence[Way]) -> list[Counted]:
    """What the layers of a set take, each by one of the ways."""
    named = {f"{__name__}: {which}, {', '.join(way)}": (which, *way) for way in ways}
    found = store().all(_ready, named)
    return [counted(found[what]) for what in named]


def _ready(which: str, name: str, core: str, target: str, emit: str) -> Ready:
    """target: "without" is the core's own without its vectors"""
    one = _cases(which)[name]
    # as it is: its rules of rounding are there already
    lowered = {("litert", (), "planned"): one.graph}
    made = Model("layer.test", one.graph, "litert", "0" * 64, _lowered=lowered)
    device, chosen = open_device(CORES[core], "gcc", "qemu", core), target
    known = {}
    if target == "without":
        own, chosen = TARGETS[core], core
        known[core] = replace(own, features=own.features - {"mve"})
    with patch.dict(TARGETS, known):
        library = made.build(name="layer", target=chosen, emit=emit)
        return ready(device, library)
