"""What range of real numbers a tensor's integers stand for, by what was observed.

minmax      all that was seen
percentile  all but the outermost values
entropy     the range whose 256 steps keep most of the distribution (least
            Kullback-Leibler divergence)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem
from pybuild.quantisation import METHODS
from pybuild.quantisation.execute import Execution
from pybuild.quantisation.samples import Samples

BINS = 2048
_STEPS = 256
# values in a bin on average, below which entropy takes wider bins
_FEW = 16

Floats = npt.NDArray[np.float64]
Range = tuple[float, float]


@dataclass(frozen=True)
class Calibration:
    """How ranges are chosen; percentile: per cent of the values that lie inside."""

    method: str = "minmax"
    percentile: float = 99.99

    def problems(self) -> list[Problem]:
        found = []
        if self.method not in METHODS:
            hint = f"one of {', '.join(METHODS)}"
            found.append(Problem("--calibrate", f"'{self.method}' is not known", hint))
        if not 50 < self.percentile <= 100:
            what = f"{self.percentile:g} is not above 50 and at most 100"
            found.append(Problem("--percentile", what))
        return found


@dataclass(frozen=True)
class Observed:
    """Of a tensor: its least and greatest value, the mean over the samples."""

    low: float
    high: float
    channels: Floats
    mean: Floats


def observe(
    execution: Execution, samples: Samples, names: Iterable[str]
) -> dict[str, Observed]:
    """One run over all samples.

    Shapes  channels [C]: the greatest magnitude by the last axis; mean as the tensor
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
        if not np.isfinite([each.low, each.high]).all()
    ]
    if found:
        raise BuildError.of(found)
    return {
        name: Observed(o.low, o.high, o.channels, o.mean / samples.count)
        for name, o in seen.items()
    }


def _observed(value: Floats) -> Observed:
    """`mean` holds the sum until all have been seen."""
    flat = value.reshape(-1, value.shape[-1] if value.ndim > 1 else 1)
    return Observed(
        float(value.min()), float(value.max()), np.abs(flat).max(0), value.sum(0)
    )


def _joined(a: Observed, b: Observed) -> Observed:
    low, high = min(a.low, b.low), max(a.high, b.high)
    return Observed(low, high, np.maximum(a.channels, b.channels), a.mean + b.mean)


def ranges(
    execution: Execution,
    samples: Samples,
    seen: Mapping[str, Observed],
    calibration: Calibration,
) -> dict[str, Range]:
    """The range of each observed tensor, zero included.

    Time    a second run over all samples but for minmax
    """
    whole = {name: (min(o.low, 0.0), max(o.high, 0.0)) for name, o in seen.items()}
    if calibration.method == "minmax":
        return whole
    found = {}
    for name, counts in _histograms(execution, samples, whole):
        if calibration.method == "percentile":
            found[name] = _central(counts, whole[name], calibration.percentile)
        else:
            found[name] = _kept(counts, whole[name])
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


def _within(whole: Range, top: float) -> Range:
    return max(whole[0], -top), min(whole[1], top)


def _central(counts: Floats, whole: Range, percentile: float) -> Range:
    """The least magnitude below which this share of all values lies."""
    total = counts.cumsum()
    if total[-1] == 0:
        return whole
    last = int(np.searchsorted(total, total[-1] * percentile / 100))
    top = max(-whole[0], whole[1])
    return _within(whole, top * (min(last, BINS - 1) + 1) / BINS)


def _kept(counts: Floats, whole: Range) -> Range:
    """The magnitude at which the distribution loses least.

    Source  Migacz, 8-bit inference with TensorRT (2017)
    """
    top = max(-whole[0], whole[1])
    steps = _STEPS if min(-whole[0], whole[1]) <= 0 else _STEPS // 2
    # few values in many bins are no distribution
    while len(counts) > steps and counts.sum() < _FEW * len(counts):
        counts = counts.reshape(-1, 2).sum(1)
    if counts.sum() == 0:
        return whole
    bins = len(counts)
    tried = range(bins, steps - 1, -max(1, bins // steps))
    best = min(tried, key=lambda used: _divergence(counts, used, steps))
    return _within(whole, top * best / bins)


def _divergence(counts: Floats, bins: int, steps: int) -> float:
    """Of what `steps` levels keep of the first `bins` from what was there."""
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
    return float((p[there] * np.log(p[there] / np.maximum(q[there], 1e-12))).sum())


def magnitudes(value: Array, axis: int) -> Floats:
    """The greatest magnitude of weights at each index of an axis."""
    rest = tuple(i for i in range(value.ndim) if i != axis)
    return np.asarray(np.abs(value.astype(np.float64)).max(rest))
