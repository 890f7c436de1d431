"""com.microsoft.GatherBlockQuantized: rows of a low-bit table, as real numbers."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.integers.few_bits import REALS, fields, part
from pybuild.frontends.onnx.operators.elements import flowing

_BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "int8": 8}  # but of uint8
_LEAST = {"int4": -8, "int8": -128, "int2": -2}  # of types with a sign


def _numbers(given: Array, bits: int, count: int) -> Array:
    """Return integers of a few bits as unsigned bytes; signed types are shifted so that
    their minimum becomes 0."""
    if given.dtype.name == "uint8" and bits < 8:
        return fields(given, bits, count)
    least = _LEAST.get(given.dtype.name, 0)
    return (given.astype(np.int16) - np.int16(least)).astype(np.uint8)


def _packed(numbers: Array, bits: int) -> Array:
    """Pack numbers into bytes, the first one in the lowest bits."""
    parts = numbers.reshape(*numbers.shape[:-1], -1, 8 // bits)
    made = np.zeros(parts.shape[:-1], np.uint8)
    for i in range(8 // bits):
        made |= np.left_shift(parts[..., i].astype(np.uint8), bits * i)
    return made


def _zero(flow: Flow, data: Array, bits: int, rows: int, blocks: int) -> Array:
    """Return the zero points of blocks, shifted as in `_numbers`."""
    kind = data.dtype.name
    if not flow.has(3):
        whole = 1 << bits - 1 if kind == "uint8" else 0
        return np.full((rows, blocks), whole - _LEAST.get(kind, 0), np.uint8)
    each = -(-blocks * bits // 8) if kind == "uint8" else blocks
    given = part(flow, 3, "zero_points", rows * each, (kind,)).reshape(rows, each)
    return _numbers(given, bits, blocks)


@flowing
def gather_blocks(flow: Flow) -> None:
    """Gather bytes, scales and zero points of the rows as the file stores them, then
    compute (number - zero point) * scale for the gathered rows only."""
    op = flow.op
    bits, size = op.integer("bits", 4), op.integer("block_size", 128)
    data = flow.value(0, "data")
    rank = data.ndim
    along = flow.axis(op.integer("quantize_axis", 1), rank)
    rows = flow.axis(op.integer("gather_axis", 0), rank)
    kind = data.dtype.name
    bits = bits if kind == "uint8" else _BITS.get(kind, 0)
    if bits not in (2, 4, 8):
        what = f"{bits} bits in a table of {kind} are not supported"
        raise op.invalid(what, "a table of uint8 may have 2, 4 or 8 bits")
    count = data.shape[-1] * (8 // bits if kind == "uint8" else 1)
    whole = size > 0 and count % (8 // bits) == 0 and count % size == 0
    if rank != 2 or (rows, along) != (0, 1) or not whole:
        what = f"rows along axis {rows}, or blocks of {size} along axis {along} of "
        what += f"{list(data.shape)}, are not supported"
        raise op.invalid(what, "a table of two axes, whole blocks along the last one")
    blocks = count // size
    scales = part(flow, 2, "scales", len(data) * blocks, REALS)
    zero = _zero(flow, data, bits, len(data), blocks)
    table = _packed(_numbers(data, bits, count), bits)
    indices = flow.arg(1)
    taken = [
        flow.gather(flow.const(np.ascontiguousarray(v)), indices, 0)
        for v in (table, scales.reshape(-1, blocks), zero)
    ]
    numbers, scale, point = taken
    many = flow.shape(indices)
    if bits < 8:
        one = flow.reshape(numbers, (*many, count * bits // 8, 1))
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        one = flow.map("shift_right", one, flow.const(shifts))
        numbers = flow.map("bit_and", one, flow.const(np.uint8((1 << bits) - 1)))
    real = DType.of(scales)
    values = flow.cast(flow.reshape(numbers, (*many, blocks, size)), DType.INT32)
    points = flow.cast(flow.reshape(point, (*many, blocks, 1)), DType.INT32)
    steps = flow.cast(flow.sub(values, points), real)
    made = flow.mul(steps, flow.reshape(scale, (*many, blocks, 1)))
    flow.give(flow.reshape(made, (*many, count)))
