"""Constants of few bits with a scale for each block, as com.microsoft's operators have
them: unpacked, their sizes checked; and MatMulNBits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import flowing
from pybuild.frontends.onnx.operators.products import MATMUL

REALS = ("float32", "float16", "bfloat16")
BYTES = ("uint8",)


def fields(packed: Array, bits: int, count: int) -> Array:
    """Unpack low-bit numbers along the last axis, the lowest bits of a byte first."""
    whole = packed.astype(np.uint8)
    parts = [whole >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    wide: Array = np.stack(parts, -1).reshape(*packed.shape[:-1], -1)
    return wide[..., :count]


def part(
    flow: Flow, index: int, name: str, count: int, kinds: tuple[str, ...]
) -> Array:
    """Return a known input of as many values, of one of these types.

    Errors  BuildError for others, and for real numbers that are not finite
    """
    value = flow.value(index, name)
    kind = value.dtype.name
    if kind not in kinds or value.size != count:
        what = f"its input '{name}' has {value.size} values of {kind}, not {count} of "
        hint = "export it again: its sizes do not fit each other"
        raise flow.op.invalid(what + " or ".join(kinds), hint)
    if kind in REALS and not np.isfinite(value.astype(np.float32)).all():
        what = f"its input '{name}' has values that are not finite"
        raise flow.op.invalid(what, "quantise the model again")
    return value


@flowing
def matmul_bits(flow: Flow) -> None:
    """com.microsoft.MatMulNBits: x times constant weights of few bits, quantised in
    blocks along the features. The weights become real numbers here."""
    op = flow.op
    columns, rows, bits, size = (
        op.integer(n, d)
        for n, d in (("N", 0), ("K", 0), ("bits", 4), ("block_size", 0))
    )
    if bits not in (2, 4, 8):
        raise op.invalid(f"{bits} bits are not supported", "2, 4 and 8 are")
    if flow.has(4):
        what = "an order of its rows (g_idx) is not supported"
        raise op.invalid(what, "quantise without act_order")
    if min(columns, rows, size) < 1 or size * bits % 8:
        what = f"K={rows}, N={columns}, block_size={size} make no sense"
        raise op.invalid(what, "blocks of 16, 32, 64, 128 or 256 values are usual")
    count = -(-rows // size)
    packed = part(flow, 1, "B", columns * count * (size * bits // 8), BYTES)
    scale = part(flow, 2, "scales", columns * count, REALS)
    scales = scale.reshape(columns, count, 1).astype(np.float32)
    zero: Array = np.full((columns, count, 1), 1 << bits - 1, np.float32)
    if flow.has(3):
        zero = _zero_points(flow, columns, count, bits).reshape(columns, count, 1)
    numbers = fields(packed.reshape(columns, count, -1), bits, size).astype(np.float32)
    whole = (numbers - zero.astype(np.float32)) * scales
    weights = whole.reshape(columns, -1)[:, :rows].T
    made = flow.draft.fresh(f"{op.output}.product")
    inputs = (op.input(0), flow.const(np.ascontiguousarray(weights, np.float32)))
    MATMUL(flow.draft, replace(op, name=made, inputs=inputs, outputs=(made,), attrs={}))
    flow.give(flow.add(made, flow.arg(5)) if flow.has(5) else made)


def _zero_points(flow: Flow, columns: int, count: int, bits: int) -> Array:
    """Return those of all blocks: packed as the weights are, or real numbers."""
    if flow.value(3, "zero_points").dtype.name in REALS:
        return part(flow, 3, "zero_points", columns * count, REALS)
    each = -(-count * bits // 8)
    given = part(flow, 3, "zero_points", columns * each, BYTES)
    return fields(given.reshape(columns, each), bits, count)
