"""float32 weights that are integers of 2 or 4 bits times a scale of their block: what a
file with scales of blocks, or of channels, holds. The values decide, not the file.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.records import dataclass

# weights of a block that are tried; of scales of channels a block has all of a channel
_SIZES = (16, 32, 64, 128, 256)
_BITS = (2, 4)
_SAMPLE = 8  # blocks, of which one mostly says that others are none


@dataclass(frozen=True)
class BlockWeights:
    """(numbers + offsets) * scales, in float32, are the weights.

    Shapes  numbers int8[O, taps], each of so many bits, with a sign;
            scales float32[O, blocks]; offsets int8[O, blocks]
    """

    bits: int
    size: int
    numbers: Array
    scales: Array
    offsets: Array

    @property
    def bytes(self) -> int:
        offsets = self.offsets.size if self.offsets.any() else 0
        return self.numbers.size * self.bits // 8 + 4 * self.scales.size + offsets


def block_weights(kernels: Array) -> BlockWeights | None:
    """The integers and scales of weights [O, taps] that take the fewest bytes; None:
    they are others."""
    if DType.of(kernels) is not DType.FLOAT32 or not kernels.size:
        return None
    found = (_of_bits(kernels, bits) for bits in _BITS)
    return min((one for one in found if one), key=lambda one: one.bytes, default=None)


def _of_bits(kernels: Array, bits: int) -> BlockWeights | None:
    """Integers of so many bits, with the largest blocks that are possible."""
    taps = kernels.shape[1]
    sizes = {taps, *(size for size in _SIZES if taps % size == 0)}
    for size in sorted(sizes, reverse=True):
        blocks = kernels.reshape(-1, size)
        if _scales(blocks[:_SAMPLE], bits) is None:
            continue
        found = _scales(blocks, bits)
        if found is not None:
            return _arranged(kernels.shape, blocks, found, bits)
    return None


def _arranged(
    shape: tuple[int, ...], blocks: Array, scales: Array, bits: int
) -> BlockWeights:
    numbers = np.rint(_quotients(blocks, scales)).astype(np.int32)
    least, half = numbers.min(1), 1 << bits - 1
    offset = np.where((least < -half) | (numbers.max(1) >= half), least + half, 0)
    by_channel = (shape[0], -1)
    return BlockWeights(
        bits,
        blocks.shape[1],
        (numbers - offset[:, None]).astype(np.int8).reshape(shape),
        scales.reshape(by_channel),
        offset.astype(np.int8).reshape(by_channel),
    )


def _quotients(blocks: Array, scales: Array) -> Array:
    made: Array = (
        np.asarray(blocks, np.float64) / np.asarray(scales, np.float64)[:, None]
    )
    return made


def _scales(blocks: Array, bits: int) -> Array | None:
    """A scale for each block of integers of so many bits; None: some has none."""
    far = (1 << bits) - 1  # steps from the least integer of a block to the greatest
    if not np.isfinite(blocks).all():
        return None
    most = np.abs(blocks).max(1)
    found = np.where(most == 0, np.float32(1), np.float32(0))
    for steps in range(1, far + 1):
        nearest = (most / np.float32(steps)).astype(np.float32)
        for to in (None, np.float32(0), np.float32(np.inf)):
            open_ = found == 0
            if not open_.any():
                return found
            scale = nearest if to is None else np.nextafter(nearest, to)
            open_ &= scale > 0
            fits = _fits(blocks[open_], scale[open_], far)
            found[np.flatnonzero(open_)[fits]] = scale[open_][fits]
    return found if (found > 0).all() else None


def _fits(blocks: Array, scales: Array, far: int) -> Array:
    """True for each block that is integers times its scale, of so few steps."""
    numbers = np.rint(_quotients(blocks, scales))
    few = numbers.max(1, initial=0) - numbers.min(1, initial=0) <= far
    again = np.multiply(numbers.astype(np.float32), scales[:, None], dtype=np.float32)
    made: Array = few & (again == blocks).all(1)
    return made
