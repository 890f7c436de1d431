"""float32 weights that are integers of 4 bits times a scale of their block: what a file
with scales of blocks, or of channels, holds. The values decide, not the file.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.records import dataclass

# weights of a block that are tried; of scales of channels a block has all of a channel
_SIZES = (16, 32, 64, 128, 256)
_MOST = 15  # steps from the least integer of a block to the greatest
_SAMPLE = 8  # blocks, of which one mostly says that others are none


@dataclass(frozen=True)
class BlockWeights:
    """(numbers + offsets) * scales, in float32, are the weights.

    Shapes  numbers int8[O, taps], each from -8 to 7;
            scales float32[O, blocks]; offsets int8[O, blocks]
    """

    size: int
    numbers: Array
    scales: Array
    offsets: Array


def block_weights(kernels: Array) -> BlockWeights | None:
    """The integers and scales of weights [O, taps], with the largest blocks that are
    possible; None: they are others."""
    if DType.of(kernels) is not DType.FLOAT32 or not kernels.size:
        return None
    taps = kernels.shape[1]
    sizes = {taps, *(size for size in _SIZES if taps % size == 0)}
    for size in sorted(sizes, reverse=True):
        blocks = kernels.reshape(-1, size)
        if _scales(blocks[:_SAMPLE]) is None:
            continue
        found = _scales(blocks)
        if found is not None:
            return _arranged(kernels.shape, blocks, found)
    return None


def _arranged(
    shape: tuple[int, ...], blocks: Array, scales: Array
) -> BlockWeights | None:
    numbers = np.rint(_quotients(blocks, scales)).astype(np.int32)
    least = numbers.min(1)
    offset = np.where((least < -8) | (numbers.max(1) > 7), least + 8, 0)
    by_channel = (shape[0], -1)
    return BlockWeights(
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


def _scales(blocks: Array) -> Array | None:
    """A scale for each block; None: some has none."""
    if not np.isfinite(blocks).all():
        return None
    most = np.abs(blocks).max(1)
    found = np.where(most == 0, np.float32(1), np.float32(0))
    for steps in range(1, _MOST + 1):
        nearest = (most / np.float32(steps)).astype(np.float32)
        for to in (None, np.float32(0), np.float32(np.inf)):
            open_ = found == 0
            if not open_.any():
                return found
            scale = nearest if to is None else np.nextafter(nearest, to)
            open_ &= scale > 0
            fits = _fits(blocks[open_], scale[open_])
            found[np.flatnonzero(open_)[fits]] = scale[open_][fits]
    return found if (found > 0).all() else None


def _fits(blocks: Array, scales: Array) -> Array:
    """True for each block that is integers times its scale, of few steps."""
    numbers = np.rint(_quotients(blocks, scales))
    few = numbers.max(1, initial=0) - numbers.min(1, initial=0) <= _MOST
    again = np.multiply(numbers.astype(np.float32), scales[:, None], dtype=np.float32)
    made: Array = few & (again == blocks).all(1)
    return made
