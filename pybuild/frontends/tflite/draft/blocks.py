"""Constants with a scale for each block of a row (BlockwiseQuantization), as the real
numbers that they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite.draft.stored import stored
from pybuild.frontends.tflite.reader.flat import FlatBlocks, FlatTensor
from pybuild.params.budget import Budget

_AGAIN = "quantise the model again"


def real_blocks(
    where: str, name: str, numbers: Array, blocks: FlatBlocks,
    tensors: Sequence[FlatTensor], budget: Budget,
) -> Array:  # fmt: skip
    """Return integers times the scales of their blocks along the last axis, as float32.

    Source  LiteRT's EvalBlockwise: scales row by row. Its kernels for CPUs do not read
            zero points, so only those that are 0 are accepted
    Errors  BuildError for blocks or scales that do not fit the shape, and zero points
    """
    shape, size = numbers.shape, blocks.size
    what = f"'{name}' of shape {list(shape)} has blocks of {size} values"
    if numbers.dtype != np.int8:
        what += f", and type {numbers.dtype.name}"
        raise BuildError(where, what, "only int2, int4 and int8 may have blocks")
    if not shape or size < 1 or shape[-1] % size:
        hint = "a row must be a whole number of blocks, such as of 32"
        raise BuildError(where, what, hint)
    if blocks.shape and blocks.shape != (*(1,) * (len(shape) - 1), size):
        what = f"'{name}' of shape {list(shape)} has blocks of {list(blocks.shape)}"
        raise BuildError(where, what, "only blocks along the last axis are supported")

    def part(of: str, index: int, kinds: str) -> Array:
        """Return a number for each block."""
        if not 0 <= index < len(tensors):
            said = f"the {of} of '{name}' are tensor {index} of {len(tensors)}"
            raise BuildError(where, said, "the file is damaged")
        flat = tensors[index]
        if flat.blocks or not flat.data.size:
            said = f"the {of} of '{name}', '{flat.name}', are no constant"
            raise BuildError(where, said, _AGAIN)
        value = stored(where, flat.name, flat, budget)
        if value.dtype.kind not in kinds or value.size != numbers.size // size:
            said = f"the {of} of '{name}', '{flat.name}', are {value.size} of "
            said += f"{value.dtype.name}, for {numbers.size // size} blocks of {size}"
            raise BuildError(where, said, _AGAIN)
        return value.reshape(*shape[:-1], -1, 1)

    scales = part("scales", blocks.scales, "f").astype(np.float32)
    if not np.isfinite(scales).all():
        raise BuildError(where, f"'{name}' has a scale that is not finite", _AGAIN)
    if blocks.zero_points > 0 and part("zero points", blocks.zero_points, "iu").any():
        what = f"'{name}' has zero points of blocks, which LiteRT does not read"
        raise BuildError(where, what, "quantise its weights symmetrically")
    budget.take_bytes(4 * numbers.size)
    parts = numbers.reshape(*scales.shape[:-1], size).astype(np.float32)
    return np.multiply(parts, scales, dtype=np.float32).reshape(shape)
