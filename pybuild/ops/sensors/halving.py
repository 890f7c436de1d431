"""The Fourier transform of real int16 in pairs of int16, as cores with pairs have it:
halves of sums, products rounded to their higher half, what is too large is held.

Its numbers are those of kissfft but for the rounding. Halves of sums are rounded down;
what goes into them is raised before, so that all errors are 0 on average.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import Types, Values, invalid, operand, value
from pybuild.ops.sensors import fft as exact
from pybuild.ops.sensors.fft import FftTables, fft_tables

LEAST = 8
# what is added before a part of a later stage is halved; before a part of the end is
RAISED, RAISED_END = 2, 1
# what is added before the lower half of a product is left out: to the nearest, and
# that of the second part of a later stage half a step higher
NEAREST = 1 << 15
ADDED = (NEAREST << 1, NEAREST, NEAREST)


def _held(x: Ints) -> Ints:
    return np.clip(x, DType.INT16.low, DType.INT16.high)


def _times(x: Ints, w: Ints, added: int = NEAREST) -> Ints:
    """Half of x * w: [.., 2], w in 2^-15."""
    real = x[..., 0] * w[..., 0] - x[..., 1] * w[..., 1]
    imaginary = x[..., 0] * w[..., 1] + x[..., 1] * w[..., 0]
    return (np.stack([real, imaginary], -1) + added) >> 16


def _turned(x: Ints) -> Ints:
    """x times -i."""
    return np.stack([x[..., 1], -x[..., 0]], -1)


def _first(blocks: Ints) -> Ints:
    """Butterflies without factors: [.., radix, 2]."""
    if blocks.shape[-2] == 2:
        one, other = blocks[..., 0, :], blocks[..., 1, :]
        return np.stack([(one + other) >> 1, (one - other) >> 1], -2)
    a, b, c, d = (blocks[..., n, :] for n in range(4))
    even, less = (a + c) >> 1, (a - c) >> 1
    odd, apart = (b + d) >> 1, (b - d) >> 1
    turned = _turned(apart)
    made = [even + odd, less + turned, even - odd, less - turned]
    return np.stack(made, -2) >> 1


def _later(blocks: Ints, factors: Ints) -> Ints:
    """Butterflies of four: [.., 4, between, 2], factors [between, 3, 2]."""
    a = (blocks[..., 0, :, :] + RAISED) >> 1
    b, c, d = (
        _times(blocks[..., n + 1, :, :], factors[:, n], ADDED[n]) for n in range(3)
    )
    even, less = (a + c) >> 1, (a - c) >> 1
    odd, turned = (b + d) >> 1, _turned((b - d) >> 1)
    made = [even + odd, less + turned, even - odd, less - turned]
    return _held(np.stack(made, -3))


def factors_of(tables: FftTables, between: int) -> Ints:
    """[between, 3, 2] by which the parts of a later stage are turned."""
    stride = len(tables.order) // (4 * between)
    places = np.arange(between)[:, None] * stride * np.array([1, 2, 3])
    return np.asarray(tables.twiddles[places])


def halving_fft(given: Array, length: int) -> Array:
    """Shapes  given int16[.., n], n <= length; int16[.., length + 2]"""
    tables = fft_tables(length, DType.INT16, False)
    pairs = len(tables.order)
    rows = given.reshape(-1, given.shape[-1]).astype(np.int64)
    padded = np.pad(rows, ((0, 0), (0, length - rows.shape[1])))
    x = padded.reshape(-1, pairs, 2)[:, tables.order]
    for at, (radix, between) in enumerate(tables.stages):
        blocks = x.reshape(len(x), pairs // (radix * between), radix, between, 2)
        if at:
            x = _later(blocks, factors_of(tables, between))
        else:
            x = _first(blocks[..., 0, :])
        x = x.reshape(len(x), pairs, 2)
    return _apart(x, tables).astype(np.int16).reshape(*given.shape[:-1], -1)


def _apart(z: Ints, tables: FftTables) -> Ints:
    """The transform of real numbers from that of their pairs."""
    pairs = z.shape[1]
    y = np.zeros((len(z), pairs + 1, 2), np.int64)
    y[:, 0, 0] = (z[:, 0, 0] + z[:, 0, 1]) >> 1
    y[:, pairs, 0] = (z[:, 0, 0] - z[:, 0, 1]) >> 1
    k = np.arange(1, pairs // 2 + 1)
    near, far = z[:, k], z[:, pairs - k]
    both, apart = (near + far) >> 1, (near - far) >> 1
    odd = np.stack([apart[..., 0], both[..., 1]], -1)
    turned = _times(odd, tables.joining)
    real, imaginary = ((x + RAISED_END) >> 1 for x in (both[..., 0], apart[..., 1]))
    first = np.stack([real, turned[..., 1]], -1)
    other = np.stack([turned[..., 0], imaginary], -1)
    y[:, k] = _held(first + other)
    y[:, pairs - k] = _held(first - other)
    return y.reshape(len(z), -1)


def is_halving(node: Node) -> bool:
    return bool(node.attrs.get("halving", False))


def infer_fft(node: Node, graph: Graph) -> Types:
    """Same as infer_fft of fft.py, with the attribute `halving`."""
    made = exact.infer_fft(node, graph)
    length, x = int(node.attrs["length"]), operand(node, graph, 0)
    forth = not node.attrs["inverse"] and length >= LEAST
    if is_halving(node) and (x.dtype is not DType.INT16 or not forth):
        what = f"a transform of {length} {x.dtype.value} cannot halve"
        raise invalid(node, graph, what, f"int16, forward, {LEAST} numbers or more")
    return made


def fft(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning."""
    if is_halving(node):
        return (halving_fft(value(values, 0), int(node.attrs["length"])),)
    return exact.fft(node, graph, values)
