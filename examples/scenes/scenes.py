"""Pictures of 16x16 in which one handwritten digit is to be found among clutter.

Made from pictures of 8x8 by a seed. Knows nothing of networks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]

SIZE = 16
SMALL = 8


def scenes(
    rng: np.random.Generator, digits: F32, labels: I64, count: int
) -> tuple[F32, I64]:
    """`count` pictures, and which digit is the bright one in each.

    Shapes  digits [M,8,8] in 0..1; pictures [count,16,16] in 0..1, steps of 1/255
    """
    made = np.zeros((count, SIZE, SIZE), np.float32)
    chosen = rng.integers(0, len(digits), (count, 3))
    for picture, (main, *others) in zip(made, chosen, strict=True):
        for other in others:
            part = digits[other] * rng.uniform(0.2, 0.5)
            _place(picture, part[: rng.integers(3, 6)], rng)
        _place(picture, _enlarged(digits[main], rng) * rng.uniform(0.6, 1.0), rng)
    made += rng.normal(0, 0.06, made.shape).astype(np.float32)
    return np.rint(np.clip(made, 0, 1) * 255).astype(np.float32) / 255, labels[
        chosen[:, 0]
    ]


def _enlarged(digit: F32, rng: np.random.Generator) -> F32:
    """To 9..14 rows and columns, each by itself; between pixels linearly."""
    for axis in (0, 1):
        at = np.linspace(0, SMALL - 1, int(rng.integers(9, 15)))
        low = np.minimum(at.astype(int), SMALL - 2)
        share = (at - low).reshape([-1 if a == axis else 1 for a in (0, 1)])
        first, second = digit.take(low, axis), digit.take(low + 1, axis)
        digit = (first * (1 - share) + second * share).astype(np.float32)
    return digit


def _place(picture: F32, part: F32, rng: np.random.Generator) -> None:
    """Somewhere in the picture, where it is brighter than what is there."""
    top, left = (int(rng.integers(0, SIZE - size + 1)) for size in part.shape)
    rows, columns = slice(top, top + part.shape[0]), slice(left, left + part.shape[1])
    picture[rows, columns] = np.maximum(picture[rows, columns], part)
