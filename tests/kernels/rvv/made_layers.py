"""Instructions of made layers on RISC-V's vectors and on RV32IMC, counted in QEMU:
`python -m tests.kernels.rvv.made_layers`. With those of docs/riscv-vectors.md."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.boards import bench
from pybuild.ir.loop import INT16
from tests.boards.devices import device
from tests.boards.side_by_side import built
from tests.kernels.kernel_cases import (
    INT8,
    Case,
    case,
    computed_product,
    tensor,
    weighted_case,
)


def layers() -> dict[str, Case]:
    """By what the page calls them."""
    found = {}
    for elem in (INT8, INT16):
        kind = elem.value
        conv, depthwise = ((1, 12, 12, n) for n in (32, 64))
        found |= {
            f"1x1, 64 to 64 channels, {kind}": weighted_case(
                "conv2d", (1, 12, 12, 64), (64, 1, 1, 64), elem
            ),
            f"3x3, 32 to 32 channels, {kind}": weighted_case(
                "conv2d", conv, (32, 3, 3, 32), elem
            ),
            f"depthwise 3x3, 64 channels, {kind}": weighted_case(
                "depthwise_conv2d", depthwise, (3, 3, 64), elem
            ),
            f"3x3, 3 to 8 channels, steps of 2, {kind}": weighted_case(
                "conv2d",
                (1, 33, 97, 3),
                (8, 3, 3, 3),
                elem,
                strides=(2, 2),
                pads=(0, 0, 0, 0),
            ),
            f"3x3 in 4 groups, 64 to 64 channels, {kind}": weighted_case(
                "conv2d", (1, 12, 12, 64), (64, 3, 3, 16), elem, groups=4
            ),
            f"add, {kind}": _sum(elem is INT16),
        }
    one = computed_product(INT8, (64, 64, 64))
    for turned in (False, True):
        one = computed_product(INT8, (64, 64, 64), transposed=turned)
        node = one.node.with_attrs(rounding="double")
        made = replace(one, node=node, graph=replace(one.graph, nodes=(node,)))
        found[f"matmul 64x64x64{', of the transposed' * turned}"] = made
    x = tensor((64, 64), INT8, 0.1, 9)
    found["softmax, 64 lines of 64"] = case(
        "softmax",
        (x,),
        tensor((), INT8, 1 / 256, -128),
        axis=1,
        beta=1.0,
        rounding="double",
    )
    return found


def _sum(wide: bool) -> Case:
    elem, unit = (INT16, 2.0**-8) if wide else (INT8, 1.0)
    a, b, y = (tensor((1, 16, 16, 32), elem, s * unit) for s in (0.05, 0.03, 0.08))
    return case("add", (a, b), y, rounding="double", clamp=(None, None))


def counted(name: str, one: Case, core: str, board: str) -> tuple[int, int]:
    """Multiply-accumulates, or elements, and instructions."""
    library = built({"only_": one}, core, "c")
    found = bench.bench_on_board(device(board, "zig"), library)
    size = int(np.prod(one.expected().shape))
    (row,) = (r for r in found.layers if r.op == one.node.op)
    return row.macs or size, row.instructions


if __name__ == "__main__":
    for name, one in layers().items():
        macs, scalar = counted(name, one, "rv32imc", "riscv32-virt")
        _, vector = counted(name, one, "rv32imcv", "riscv32-virt-v")
        print(f"| {name} | {scalar / macs:.2f} | {vector / macs:.3f} |", flush=True)
