"""Tables of a log-mel front end: window, bands, gains. Real numbers become integers
here and nowhere else.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array
from pybuild.ops.signal import GAINS
from pybuild.records import dataclass

# of a window's weights, and of a band's
WEIGHT_BITS = 12
# of a cosine transform's
DCT_BITS = 12


def hann(size: int) -> Array:
    """int16[size] in 2^-12: a raised cosine, symmetric about the middle."""
    arg = (np.arange(size) + 0.5) * 2 * np.pi / size
    scaled = (0.5 - 0.5 * np.cos(arg)) * (1 << WEIGHT_BITS)
    return np.floor(scaled + 0.5).astype(np.int16)


@dataclass(frozen=True)
class Bands:
    """Triangles that overlap by half, of frequencies `first` to `last` - 1.

    weights, unweights     of each frequency: its share of a band, and of the one before
    starts, places, widths  of each half: first frequency, first weight, frequencies
    """

    weights: Array
    unweights: Array
    starts: Array
    places: Array
    widths: Array
    first: int
    last: int

    def tables(self) -> dict[str, Array]:
        """The tables in the form that the operator filter_bank takes."""
        return {
            "weights": self.weights, "unweights": self.unweights,
            "starts": self.starts, "places": self.places, "widths": self.widths,
        }  # fmt: skip


def _mel(hertz: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 1127.0 * np.log1p(hertz / 700.0)


def mel_bands(rate: int, length: int, bands: int, low: float, high: float) -> Bands:
    """Bands as wide as each other in mel.

    length  of the transform; low, high  Hz
    """
    ends = _mel(np.asarray([low, high])).tolist()
    edges = np.linspace(ends[0], ends[1], bands + 2)
    places_of = _mel(np.arange(length // 2 + 1) * rate / length)
    shares: list[float] = []
    starts, places, widths = [], [], []
    for left, right in pairwise(edges.tolist()):
        (inside,) = np.nonzero((left <= places_of) & (places_of < right))
        starts.append(int(inside[0]) if len(inside) else 0)
        places.append(len(shares))
        widths.append(len(inside))
        shares += ((right - places_of[inside]) / (right - left)).tolist()
    one = 1 << WEIGHT_BITS
    weights = np.floor(np.asarray(shares) * one + 0.5).astype(np.int16)
    filled = [s for s, n in zip(starts, widths, strict=True) if n]
    after = [s + n for s, n in zip(starts, widths, strict=True) if n]
    first, second, third = (
        np.asarray(row, np.int16) for row in (starts, places, widths)
    )
    return Bands(
        weights, np.int16(one) - weights, first, second, third, min(filled), max(after)
    )


def cosines(bands: int, coefficients: int) -> Array:
    """int32[bands, coefficients] in 2^-12: the orthonormal cosine transform."""
    k, n = np.arange(coefficients), np.arange(bands)[:, None]
    real = np.sqrt(2 / bands) * np.cos(np.pi * k * (n + 0.5) / bands)
    real[:, 0] = np.sqrt(1 / bands)
    rounded: Array = np.floor(real * (1 << DCT_BITS) + 0.5).astype(np.int32)
    return rounded


def gains(strength: float, offset: float, gain_bits: int, noise_bits: int) -> Array:
    """int16[125] of 2^gain_bits * (noise / 2^noise_bits + offset)^-strength: for each
    power of two a parabola through three points.
    """

    def gain(x: int) -> int:
        real = float(1 << gain_bits) * (x / (1 << noise_bits) + offset) ** -strength
        return min((1 << 15) - 1, int(real + 0.5))

    table = [gain(0), gain(1)]
    for bits in range(2, 33):
        x = 1 << (bits - 1)
        first, middle, last = (gain(n) for n in (x, x + x // 2, 2 * x))
        slope = 4 * (middle - first) - (last - first)
        table += [first, slope, (last - first) - slope, 0]
    return np.asarray(table[:GAINS], np.int16)
