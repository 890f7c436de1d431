"""The range of real numbers that a tensor's integers cover, from the observed values.

minmax      all that was seen
percentile  all but the outermost values
entropy     the range whose 256 steps keep most of the distribution (least
            Kullback-Leibler divergence)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem
from pybuild.options.table import PERCENTILE
from pybuild.quantisation.execute import Execution
from pybuild.quantisation.samples import Samples
from pybuild.records import dataclass

BINS = 2048
_STEPS = 256
# values in a bin on average, below which entropy takes wider bins
_FEW = 16
# samples whose reach tells the headroom
_OUTERMOST = 10

Floats = npt.NDArray[np.float64]
Range = tuple[float, float]


@dataclass(frozen=True)
class Calibration:
    """How ranges are chosen; percentile: per cent of the values that lie inside."""

    method: str = "minmax"
    percentile: float = PERCENTILE


@dataclass(frozen=True)
class Observed:
    """The observed values of a tensor on the samples.

    Shapes  lows, highs [N]: the least and greatest value of each sample; channels [C],
            by the last axis: the root mean square of the samples' greatest magnitudes,
            which the next samples repeat as the greatest of all does not; mean as the
            tensor
    """

    lows: Floats
    highs: Floats
    channels: Floats
    mean: Floats

    @property
    def whole(self) -> Range:
        """The range of all values that were seen, and zero."""
        return min(float(self.lows.min()), 0.0), max(float(self.highs.max()), 0.0)

    @property
    def reach(self) -> Range:
        """The range that was seen, with headroom at each end that is not zero."""
        low, high = self.whole
        return (
            low - headroom(-self.lows) if low < 0 else low,
            high + headroom(self.highs) if high > 0 else high,
        )


def headroom(peaks: Floats) -> float:
    """How much farther samples that were not seen are taken to reach.

    What is cut off of them loses more than finer steps gain. The mean excess of the
    outermost tenth over the next: of a tail that falls exponentially, what the greatest
    of e times as many samples has more. A value that several samples reach is a bound.

    Shapes  peaks [N]: how far each sample reaches
    """
    count = max(1, len(peaks) // _OUTERMOST)
    falling = np.sort(peaks)[::-1]
    if len(peaks) <= count or falling[0] == falling[1]:
        return 0.0
    return float((falling[:count] - falling[count]).mean())


def observe(
    execution: Execution, samples: Samples, names: Iterable[str]
) -> dict[str, Observed]:
    """One run over all samples.

    Errors  BuildError for tensors that come out infinite
    """
    seen: dict[str, Observed] = {}
    wanted = list(names)
    for values in execution.over(samples):
        for name in wanted:
            made = _observed(values[name].astype(np.float64))
            seen[name] = _joined(seen[name], made) if name in seen else made
    found = [
        Problem(execution.graph.source, f"'{name}' becomes infinite on these samples")
        for name, each in seen.items()
        if not np.isfinite(each.whole).all()
    ]
    if found:
        raise BuildError.of(found)
    count = samples.count
    return {
        name: replace(o, channels=np.sqrt(o.channels / count), mean=o.mean / count)
        for name, o in seen.items()
    }


def _observed(value: Floats) -> Observed:
    """`channels` and `mean` hold sums, of squares and of values, until all are."""
    flat = value.reshape(len(value), -1, value.shape[-1] if value.ndim > 1 else 1)
    peaks = np.abs(flat).max(1)
    return Observed(
        flat.min((1, 2)), flat.max((1, 2)), np.square(peaks).sum(0), value.sum(0)
    )


def _joined(a: Observed, b: Observed) -> Observed:
    return Observed(
        np.concatenate((a.lows, b.lows)),
        np.concatenate((a.highs, b.highs)),
        a.channels + b.channels,
        a.mean + b.mean,
    )


def ranges(
    execution: Execution,
    samples: Samples,
    seen: Mapping[str, Observed],
    calibration: Calibration,
) -> dict[str, Range]:
    """The range of each observed tensor, zero included.

    Time    a second run over all samples but for minmax
    """
    reach = {name: each.reach for name, each in seen.items()}
    if calibration.method == "minmax":
        return reach
    whole = {name: each.whole for name, each in seen.items()}
    found = {}
    for name, counts in _histograms(execution, samples, whole):
        inside = _central(counts, calibration.percentile)
        if calibration.method == "entropy":
            inside = max(_kept(counts, whole[name]), _central(counts, PERCENTILE))
        found[name] = _within(whole[name], reach[name], inside)
    return found


def _histograms(
    execution: Execution, samples: Samples, whole: Mapping[str, Range]
) -> Iterator[tuple[str, Floats]]:
    """Values by magnitude: BINS of equal width from 0 to the greatest.

    Not zeros, of which a ReLU makes many: they are exact in any range.
    """
    counts = {name: np.zeros(BINS) for name in whole}
    for values in execution.over(samples):
        for name, (low, high) in whole.items():
            top = max(-low, high)
            if top > 0:
                size = np.abs(values[name].astype(np.float64))
                counts[name] += np.histogram(size[size > 0], BINS, (0.0, top))[0]
    yield from counts.items()


def _within(whole: Range, reach: Range, inside: float) -> Range:
    """Cut at a share of the greatest magnitude; `reach` where that cuts nothing."""
    top = inside * max(-whole[0], whole[1])
    low = -top if whole[0] < -top else reach[0]
    return low, top if whole[1] > top else reach[1]


def _central(counts: Floats, percentile: float) -> float:
    """The least magnitude below which this share of all values lies."""
    total = counts.cumsum()
    last = int(np.searchsorted(total, total[-1] * percentile / 100))
    return (min(last, BINS - 1) + 1) / BINS if total[-1] else 1.0


def _kept(counts: Floats, whole: Range) -> float:
    """The magnitude at which the distribution loses least.

    Source  Migacz, 8-bit inference with TensorRT (2017)
    """
    steps = _STEPS if min(-whole[0], whole[1]) <= 0 else _STEPS // 2
    # few values in many bins are not a distribution
    while len(counts) > steps and counts.sum() < _FEW * len(counts):
        counts = counts.reshape(-1, 2).sum(1)
    if counts.sum() == 0:
        return 1.0
    bins = len(counts)
    tried = range(bins, steps - 1, -max(1, bins // steps))
    return min(tried, key=lambda used: _divergence(counts, used, steps)) / bins


def _divergence(counts: Floats, bins: int, steps: int) -> float:
    """The divergence between the first `bins` counts and what `steps` levels keep of
    them."""
    inside = counts[:bins]
    clipped = inside.copy()
    clipped[-1] += counts[bins:].sum()
    level = np.arange(bins) * steps // bins
    filled = inside > 0
    total = np.bincount(level, inside, steps)
    places = np.bincount(level, filled, steps)
    spread = np.where(filled, (total / np.maximum(places, 1))[level], 0.0)
    if spread.sum() == 0:
        return np.inf
    p, q = clipped / clipped.sum(), spread / spread.sum()
    there = p > 0
    lost = p[there] * np.log(p[there] / np.maximum(q[there], 1e-12))
    # what as many values would seem to lose if each level were even: their counts
    # vary by chance (Miller 1955)
    chance = (filled.sum() - np.count_nonzero(places)) / (2 * counts.sum())
    return float(lost.sum() - chance)


def magnitudes(value: Array, axis: int) -> Floats:
    """The greatest magnitude of weights at each index of an axis."""
    rest = tuple(i for i in range(value.ndim) if i != axis)
    return np.asarray(np.abs(value.astype(np.float64)).max(rest))
