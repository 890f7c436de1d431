"""Features of sensors with axes (accelerometers, gyroscopes): of a window of each axis
its mean, its standard deviation, and how strong its frequencies are.
"""

from __future__ import annotations

import math

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.features.draft import Draft
from pybuild.features.log_mel import Features
from pybuild.features.tables import WEIGHT_BITS, Bands, hann
from pybuild.ir.graph import Quant, Tensor
from pybuild.ops.sensors.fft import MOST

# of the factor from roots of energies to a root mean square: a window's mean square is
# 3/8, and half of a tone's energy is at negative frequencies
_ROOT_BITS, _FACTOR_BITS = WEIGHT_BITS // 2, 8
_FACTOR = round(math.sqrt(2 / 0.375) * (1 << _FACTOR_BITS))
_LEAST, _MOST_AXES = 16, 16


def motion(
    rate: float = 100.0,
    window: int = 128,
    hop: int = 64,
    axes: int = 3,
    bands: int = 6,
    low: float = 1.0,
    high: float | None = None,
    *,
    scale: float = 1.0,
    name: str = "motion",
) -> Features:
    """Features of the last `window` readings of each axis, each `hop` readings, in
    integers from the first to the last step.

    rate    Hz; window a power of two; low, high: Hz, of bands as wide as each other;
            high is None: half the rate
    scale   real = scale * reading: of the sensor, as g for each step
    Returns a graph that takes hop * axes numbers, the axes of a reading side by side;
            a row has of each axis the mean, the standard deviation, and of each band
            the root mean square: int16 in the unit of the readings
    Errors  BuildError for numbers that make no sense, all of them at once
    """
    high = rate / 2 if high is None else high
    wrong = _wrong(rate, window, hop, axes, bands, low, high, scale)
    if wrong:
        raise BuildError(name, "; ".join(wrong))
    table = _bands(rate, window, bands, low, high)
    draft, found = _Motion(name), list[Tensor]()
    whole = draft.framed(draft.input("samples", (hop * axes,)), window * axes)
    for axis in range(axes):
        one = draft.op(
            "slice", [whole], begin=(axis,), end=(window * axes,), strides=(axes,)
        )
        found += draft.of_axis(one, window, table)
    quant = Quant((scale,), (0,))
    row = draft.op("concat", found, quant, axis=0)
    draft.output(row, quant, DType.INT16)
    return Features(draft.graph())


class _Motion(Draft):
    def number(self, name: str, value: int, like: DType) -> Tensor:
        """A constant, once."""
        made = f"{name} {like.value}"
        if made in self.tensors:
            return self.tensors[made]
        return self.constant(made, np.asarray([value], like.numpy))

    def map(self, fn: str, *reads: Tensor) -> Tensor:
        return self.op("map", reads, fn=fn)

    def cast(self, x: Tensor, to: DType) -> Tensor:
        return self.op("map", [x], fn="cast", to=to.value)

    def mean(self, x: Tensor, bits: int) -> Tensor:
        """The mean of 2^bits numbers, rounded to nearest."""
        total = self.op("reduce", [x], fn="sum", axis=0)
        half = self.number("half of all", 1 << (bits - 1), x.dtype)
        places = self.number("places of all", bits, x.dtype)
        return self.map("shift_right", self.map("add", total, half), places)

    def held(self, x: Tensor) -> Tensor:
        """Within int16."""
        least = self.number("least", DType.INT16.low, x.dtype)
        most = self.number("most", DType.INT16.high, x.dtype)
        inside = self.map("minimum", self.map("maximum", x, least), most)
        return self.cast(inside, DType.INT16)

    def of_axis(self, x: Tensor, window: int, table: Bands) -> list[Tensor]:
        """Mean, standard deviation, bands."""
        bits = window.bit_length() - 1
        wide = self.cast(x, DType.INT32)
        mean = self.mean(wide, bits)
        apart = self.map("subtract", wide, mean)
        large = self.cast(apart, DType.INT64)
        square = self.mean(self.map("multiply", large, large), bits)
        none = self.number("no bits", 0, DType.INT32)
        root = self.op("square_root", [self.cast(square, DType.UINT64), none])
        deviation = self.held(self.cast(root, DType.INT32))
        return [self.held(mean), deviation, self.bands(self.held(apart), window, table)]

    def bands(self, x: Tensor, window: int, table: Bands) -> Tensor:
        """The root mean square of each band, of readings without their mean."""
        if "hann" not in self.tensors:
            self.constant("hann", hann(window))
            for name, value in table.tables().items():
                self.constant(name, value)
        y = self.op("window", [x, self.tensors["hann"]], shift=WEIGHT_BITS)
        y, bits = self.ops("auto_scale", [y])
        y = self.op("rfft", [y], length=window, inverse=False, halving=True)
        y = self.op("energy", [y], start=table.first, end=table.last)
        y = self.op("filter_bank", [y, *(self.tensors[n] for n in table.tables())])
        y = self.op("square_root", [y, self.number("no bits", 0, DType.INT32)])
        factor = self.number("factor", _FACTOR, DType.INT64)
        y = self.map("multiply", self.cast(y, DType.INT64), factor)
        below = self.number("half", _ROOT_BITS + _FACTOR_BITS - 1, DType.INT64)
        one = self.number("one", 1, DType.INT64)
        places = self.map("add", self.cast(bits, DType.INT64), below)
        half = self.map("shift_left", one, places)
        scaled = self.map(
            "shift_right", self.map("add", y, half), self.map("add", places, one)
        )
        return self.held(scaled)


def _bands(rate: float, window: int, bands: int, low: float, high: float) -> Bands:
    """The bands, with each frequency in one of them."""
    step = rate / window
    edges = np.linspace(low, high, bands + 1)
    places = np.arange(window // 2 + 1) * step
    ends = [int(np.searchsorted(places, edge)) for edge in edges]
    ends[-1] = int(np.searchsorted(places, high, "right"))
    widths = np.diff([ends[0], *ends]).astype(np.int16)
    starts = np.asarray([ends[0], *ends[:-1]], np.int16)
    count = ends[-1] - ends[0]
    weights: Array = np.full(count, 1 << WEIGHT_BITS, np.int16)
    first = (starts - ends[0]).astype(np.int16)
    return Bands(weights, 0 * weights, starts, first, widths, ends[0], ends[-1])


def _wrong(
    rate: float, window: int, hop: int, axes: int, bands: int, low: float,
    high: float, scale: float,
) -> list[str]:  # fmt: skip
    """The problems of the arguments."""
    found = []
    if window & (window - 1) or not _LEAST <= window <= MOST:
        found.append(f"window is {window}, no power of two from {_LEAST} to {MOST}")
    if not 0 < hop <= window:
        found.append(f"hop is {hop} readings, not from 1 to the window's {window}")
    if not 1 <= axes <= _MOST_AXES:
        found.append(f"{axes} axes, not from 1 to {_MOST_AXES}")
    if not (rate > 0 and 0 <= low < high <= rate / 2):
        found.append(f"bands from {low} to {high} Hz, at a rate of {rate}")
    elif bands < 1 or (high - low) / bands < rate / max(window, 1):
        found.append(f"{bands} bands: each is to have {rate / max(window, 1):.4g} Hz")
    if not (scale > 0 and math.isfinite(scale)):
        found.append(f"scale is {scale}")
    return found
