"""The Fourier transform of real numbers, and back, in int16 and int32.

Every integer is that of kissfft in fixed point, as TensorFlow Lite Micro has it:
numbers are divided before each stage, so that nothing overflows.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import Types, Values, invalid, operand, value
from pybuild.records import dataclass

KINDS = (DType.INT16, DType.INT32)
LEAST, MOST = 4, 4096
_BACK = np.array([1, -1])  # the imaginary part the other way


@dataclass(frozen=True)
class FftTables:
    """The tables of a transform of `length` real numbers, of N = length / 2 pairs.

    stages    (radix, pairs between what a butterfly joins), first to last
    order     [N] which pair of the input each place begins with
    twiddles  [N, 2] of the stages, real and imaginary
    joining   [N / 2, 2] of the step between pairs and real numbers
    """

    stages: tuple[tuple[int, int], ...]
    order: Ints
    twiddles: Ints
    joining: Ints


def fft_tables(length: int, dtype: DType, inverse: bool) -> FftTables:
    """length  a power of two"""
    pairs, sign = length // 2, 1 if inverse else -1
    radices, left = [], pairs
    while left > 1:
        radices.append(4 if left % 4 == 0 else 2)
        left //= radices[-1]
    stages, between = [], 1
    for radix in reversed(radices):
        stages.append((radix, between))
        between *= radix
    turns = np.arange(pairs) / pairs
    half = np.arange(1, pairs // 2 + 1) / pairs + 0.5
    return FftTables(
        tuple(stages),
        _order(pairs, radices),
        _circle(sign * 2 * np.pi * turns, dtype),
        _circle(sign * np.pi * half, dtype),
    )


def _order(pairs: int, radices: list[int]) -> Ints:
    """Digits of the places, in mixed radix, read backwards."""
    places = np.arange(pairs)
    found, stride, block = np.zeros(pairs, np.int64), 1, pairs
    for radix in radices:
        block //= radix
        found += places // block % radix * stride
        stride *= radix
    return found


def _circle(phase: Array, dtype: DType) -> Ints:
    points = np.stack([np.cos(phase), np.sin(phase)], -1)
    return np.floor(points * dtype.high + 0.5).astype(np.int64)


def infer_fft(node: Node, graph: Graph) -> Types:
    """attrs length, inverse. Shapes  x[.., n], n <= length; y[.., length + 2], real
    and imaginary parts; inverse: the other way
    """
    x, length = operand(node, graph, 0), int(node.attrs["length"])
    if x.dtype not in KINDS:
        what = f"'{x.name}' is {x.dtype.value}"
        raise invalid(node, graph, what, "the transform is for int16 and int32")
    if length & (length - 1) or not LEAST <= length <= MOST:
        hint = f"a power of two from {LEAST} to {MOST}"
        raise invalid(node, graph, f"a transform of {length} numbers", hint)
    inverse = bool(node.attrs["inverse"])
    given = x.shape[-1] if x.shape else 0
    if not (given == length + 2 if inverse else 0 < given <= length):
        raise invalid(node, graph, f"{given} numbers for a transform of {length}")
    return (((*x.shape[:-1], length if inverse else length + 2), x.dtype),)


class _Fixed:
    """Complex numbers in fixed point, [.., 2]; what is stored wraps."""

    def __init__(self, dtype: DType) -> None:
        self.dtype, self.bits = dtype.numpy, 8 * dtype.bytes - 1

    def rounded(self, x: Ints) -> Ints:
        return (x + (1 << (self.bits - 1))) >> self.bits

    def stored(self, x: Array) -> Ints:
        return x.astype(self.dtype).astype(np.int64)

    def divided(self, x: Ints, by: int) -> Ints:
        return self.stored(self.rounded(x * (((1 << self.bits) - 1) // by)))

    def times(self, a: Ints, b: Ints) -> Ints:
        real = a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1]
        imaginary = a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]
        return self.stored(self.rounded(np.stack([real, imaginary], -1)))


def _turned(x: Ints, inverse: bool) -> Ints:
    """x times -i; inverse: times i."""
    turned = np.stack([x[..., 1], -x[..., 0]], -1)
    return -turned if inverse else turned


def _transformed(x: Ints, tables: FftTables, fixed: _Fixed, inverse: bool) -> Ints:
    """The Fourier transform of complex numbers [rows, N, 2]."""
    pairs = x.shape[1]
    x = x[:, tables.order]
    for radix, between in tables.stages:
        blocks = x.reshape(-1, pairs // (radix * between), radix, between, 2)
        blocks = fixed.divided(blocks, radix)
        step = np.arange(between) * (pairs // (radix * between))
        first, *others = (
            fixed.times(blocks[:, :, n], tables.twiddles[step * n]) if n
            else blocks[:, :, 0]
            for n in range(radix)
        )  # fmt: skip
        if radix == 2:
            made = [first + others[0], first - others[0]]
        else:
            one, two, three = others
            even, odd = first + two, one + three
            less, turned = first - two, _turned(one - three, inverse)
            made = [even + odd, less + turned, even - odd, less - turned]
        x = fixed.stored(np.stack(made, 2).reshape(-1, pairs, 2))
    return x


def fft(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning, as kiss_fftr and kiss_fftri."""
    given, length = value(values, 0), int(node.attrs["length"])
    inverse, kind = bool(node.attrs["inverse"]), DType.of(given)
    tables, fixed = fft_tables(length, kind, inverse), _Fixed(kind)
    rows = given.reshape(-1, given.shape[-1]).astype(np.int64)
    made = _back(rows, tables, fixed) if inverse else _forth(rows, tables, fixed)
    return (made.astype(kind.numpy).reshape(*given.shape[:-1], -1),)


def _forth(rows: Ints, tables: FftTables, fixed: _Fixed) -> Ints:
    pairs = len(tables.order)
    padded = np.pad(rows, ((0, 0), (0, 2 * pairs - rows.shape[1])))
    z = _transformed(padded.reshape(-1, pairs, 2), tables, fixed, False)
    y = np.zeros((len(z), pairs + 1, 2), np.int64)
    ends = fixed.divided(z[:, 0], 2)
    y[:, 0, 0], y[:, pairs, 0] = ends[:, 0] + ends[:, 1], ends[:, 0] - ends[:, 1]
    k = np.arange(1, pairs // 2 + 1)
    near = fixed.divided(z[:, k], 2)
    far = fixed.divided(fixed.stored(z[:, pairs - k] * _BACK), 2)
    both, apart = fixed.stored(near + far), fixed.stored(near - far)
    turned = fixed.times(apart, tables.joining)
    y[:, k] = (both + turned) >> 1
    y[:, pairs - k] = ((both - turned) * _BACK) >> 1
    return y.reshape(len(z), -1)


def _back(rows: Ints, tables: FftTables, fixed: _Fixed) -> Ints:
    pairs = len(tables.order)
    y = rows.reshape(-1, pairs + 1, 2)
    z = np.zeros((len(y), pairs, 2), np.int64)
    ends = [y[:, 0, 0] + y[:, pairs, 0], y[:, 0, 0] - y[:, pairs, 0]]
    z[:, 0] = fixed.divided(fixed.stored(np.stack(ends, -1)), 2)
    k = np.arange(1, pairs // 2 + 1)
    near = fixed.divided(y[:, k], 2)
    far = fixed.divided(fixed.stored(y[:, pairs - k] * _BACK), 2)
    even, apart = fixed.stored(near + far), fixed.stored(near - far)
    odd = fixed.times(apart, tables.joining)
    z[:, k] = fixed.stored(even + odd)
    z[:, pairs - k] = fixed.stored((even - odd) * _BACK)
    return _transformed(z, tables, fixed, True).reshape(len(y), -1)
