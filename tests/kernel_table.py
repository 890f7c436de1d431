"""Writes "Kernels by core" of docs/operators.md from the code: which kernel serves an
operator of a type on a core, and what it is estimated to take: python -m
tests.kernel_table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pybuild.dtype import DType
from pybuild.features import images, log_mel
from pybuild.kernels.table import candidates
from pybuild.ops import OPERATORS
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_cases import (
    FLOAT32,
    INT8,
    Case,
    Spec,
    case,
    computed_norm,
    computed_product,
    tensor,
    weighted_case,
)
from tests.toolchains import ROOT

INT16 = DType.INT16
PAGE = ROOT / "docs" / "operators.md"
HEAD = "# Kernels by core\n"
CORES = (
    "cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55",
    "rv32imc",
)  # fmt: skip
# what a word of a kernel's name says of its instructions, or one with a number of bytes
# behind it; without one: for any core
FAMILIES = {
    "dsp": "pairs", "pairs": "pairs", "mve": "vectors", "vectors#": "vectors",
    "halves#": "vectors", "words#": "words",
}  # fmt: skip
OPENING = f"""{HEAD}
Written by `python -m tests.kernel_table`; do not edit. For a layer of each kind and
type: whose instructions the kernel has that is estimated to be fastest (*pairs* of
int16, *vectors* of 16 bytes, *words* that only move, *scalar*: blocks for cores that
multiply one by one, *any*), and its estimated instructions for a multiply-accumulate,
or for an output where a layer has no weights.
[benchmarks-layers.md](benchmarks-layers.md) has measured figures. On a core with pairs
or vectors, **any** says that no kernel of integers uses them.

| layer | type | per | {" | ".join(CORES)} |
| --- | --- | --- |{" ---: |" * len(CORES)}
"""


def _weighted(dtype: DType) -> Iterator[tuple[str, Case]]:
    kinds = {
        "conv2d 3x3, 32 to 32": ("conv2d", (1, 12, 12, 32), (32, 3, 3, 32)),
        "conv2d 1x1, 32 to 32": ("conv2d", (1, 12, 12, 32), (32, 1, 1, 32)),
        "conv2d 3x3, 3 to 16": ("conv2d", (1, 24, 24, 3), (16, 3, 3, 3)),
        "depthwise_conv2d 3x3, 32": ("depthwise_conv2d", (1, 12, 12, 32), (3, 3, 32)),
        "depthwise_conv2d 5x5, 32": ("depthwise_conv2d", (1, 12, 12, 32), (5, 5, 32)),
        "dense, 128 to 32": ("conv2d", (1, 1, 1, 128), (32, 1, 1, 128)),
    }
    for name, (op, x, w) in kinds.items():
        yield name, weighted_case(op, x, w, dtype)


def _float(op: str, x: tuple[int, ...], w: tuple[int, ...]) -> Case:
    outs = w[0] if op == "conv2d" else w[-1]
    pad = w[1] if op == "conv2d" else w[0]
    groups = {"groups": 1} if op == "conv2d" else {}
    inputs = tensor(x, FLOAT32), tensor(w, FLOAT32), tensor((outs,), FLOAT32)
    return case(op, inputs, tensor((), FLOAT32), {1: None, 2: None}, strides=(1, 1),
                pads=(pad // 2,) * 4, dilations=(1, 1), **groups)  # fmt: skip


def _floats() -> Iterator[tuple[str, Case]]:
    for name, made in _weighted(INT8):
        shapes = [made.graph.tensor(n).shape for n in made.node.inputs[:2]]
        yield name, _float(made.node.op, shapes[0], shapes[1])


def _elements(dtype: DType) -> Iterator[tuple[str, Case]]:
    shape, real = (1, 12, 12, 32), dtype is FLOAT32
    zero = 3 if dtype is INT8 else 0
    rule = {} if real else {"rounding": "double"}
    x, other = tensor(shape, dtype, 0.021, zero), tensor(shape, dtype, 0.047, zero)
    out = tensor((), dtype, 0.063, zero)
    for op in ("add", "sub", "mul"):
        yield op, case(op, (x, other), out, clamp=(None, None), **rule)
    window = {"kernel": (2, 2), "strides": (2, 2), "pads": (0,) * 4}
    yield "max_pool2d 2x2", case("max_pool2d", (x,), **window)
    yield "avg_pool2d 2x2", case("avg_pool2d", (x,), **window, **rule)
    yield "mean of an image", case("mean", (x,), out, axes=(1, 2), keepdims=True,
                                   **rule)  # fmt: skip
    around = ((0, 0), (1, 1), (1, 1), (0, 0))
    yield "pad by 1", case("pad", (x,), pads=around, value=0.0)
    if not real:
        yield "matmul of two computed", computed_product(dtype, (64, 32, 64))
        yield "norm of 32", computed_norm(dtype, (1, 144, 32))
    yield "concat", case("concat", (x, x), axis=3)
    yield "transpose", case("transpose", (x,), perm=(0, 3, 1, 2))
    top = {INT8: 1 / 256, INT16: 1 / 32768, FLOAT32: 1.0}[dtype]
    line = tensor((1, 100), dtype, 0.1, zero)
    shares = tensor((), dtype, top, -128 if dtype is INT8 else 0)
    yield "softmax of 100", case("softmax", (line,), shares, axis=1, beta=1.0, **rule)


def _decisions(dtype: DType) -> Iterator[tuple[str, Case]]:
    """What follows a net, of 12 scores; see tests/ops/test_decide.py."""
    line, one = tensor((1, 12), dtype, 0.01, 0), tensor((1,), DType.INT32)
    past = tensor((3, 1, 12), dtype, 0.01, 0)
    names: dict[str, tuple[str, tuple[Spec, ...], dict[str, Any]]] = {
        "moving_average of 4": ("moving_average", (line, past), {}),
        "best_above": ("best_above", (line,), {"least": 0.5, "ignore": ()}),
        "hysteresis": (
            "hysteresis", (line, one), {"high": 0.5, "low": 0.3, "ignore": ()}
        ),
    }  # fmt: skip
    for name, (op, inputs, attrs) in names.items():
        yield name, case(op, inputs, line if op == "moving_average" else one, **attrs)


def _sensors() -> Iterator[tuple[str, DType, Case]]:
    """What stands before a net: the steps of log_mel(), and pictures of a camera."""
    graph = log_mel().graph
    names = {
        "auto_scale": "auto_scale of 480", "window": "window of 480",
        "rfft": "rfft of 512", "energy": "energy of 257",
        "filter_bank": "filter_bank of 40", "square_root": "square_root of 40",
        "spectral_subtraction": "spectral_subtraction of 40", "pcan": "pcan of 40",
        "filter_bank_log": "filter_bank_log of 40",
    }  # fmt: skip
    found = {node.op: node for node in graph.nodes}
    for op, name in names.items():
        dtype = graph.tensor(found[op].inputs[0]).dtype
        yield name, dtype, Case(found[op], graph, {})
    part = {"crop": (0, 20, 120, 120)}
    for kind, size, resize in (
        ("rgb565", (40, 40), "box"), ("rgb565", (48, 48), "bilinear"),
        ("yuyv", (40, 40), "box"), ("bayer_rggb", (30, 30), "box"),
    ):  # fmt: skip
        made = images(kind, 160, 120, size, resize=resize, **part).graph
        name = f"image, {kind} to {size[0]}x{size[1]}, {resize}"
        yield name, DType.UINT8, Case(made.nodes[0], made, {})


def layers() -> Iterator[tuple[str, DType, Case]]:
    for dtype in (INT8, INT16):
        yield from ((name, dtype, made) for name, made in _weighted(dtype))
    yield from ((name, FLOAT32, made) for name, made in _floats())
    for dtype in (INT8, INT16, FLOAT32):
        yield from ((name, dtype, made) for name, made in _elements(dtype))
        yield from ((name, dtype, made) for name, made in _decisions(dtype))
    pair = tensor((1,), DType.INT32), tensor((2,), DType.INT32)
    yield "refractory", DType.INT32, case("refractory", pair, pair[0], runs=5)
    yield from _sensors()


def served(made: Case, core: str) -> tuple[str, int]:
    """The family of the fastest kernel, and its instructions."""
    target = TARGETS[core]
    found = candidates(made.node, made.graph, target)
    costs = [price(one, target).instructions for one in found]
    best = found[costs.index(min(costs))]
    name = best.func.name if best.func else ""
    words = re.sub(r"(words|vectors|halves)(_row)?\d+", r"\1#", name).split("_")
    blocks = any(word.startswith("block") for word in words) and "f32" not in words
    named = [FAMILIES[word] for word in words if word in FAMILIES]
    return [*named, *(["scalar"] if blocks else []), "any"][0], min(costs)


def _cell(made: Case, core: str, work: int) -> str:
    family, instructions = served(made, core)
    able = {"dsp", "mve"} & set(TARGETS[core].features)
    whole = made.graph.tensor(made.node.inputs[0]).dtype is not FLOAT32
    bare = family == "any" and whole
    word = f"**{family}**" if bare and able else family
    return f"{word} {instructions / work:.2f}"


def section() -> str:
    """The table as text."""
    rows = []
    for name, dtype, made in layers():
        macs = OPERATORS[made.node.op].macs(made.node, made.graph)
        work = macs or made.graph.tensor(made.node.output).size
        cells = [_cell(made, core, work) for core in CORES]
        per = "MAC" if macs else "output"
        rows.append(f"| {name} | {dtype.value} | {per} | {' | '.join(cells)} |")
    return OPENING + "\n".join(rows) + "\n"


def main() -> None:
    before = PAGE.read_text().partition(HEAD)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{section()}")


if __name__ == "__main__":
    main()
