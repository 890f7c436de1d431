"""The report of quantising a model, as values."""

from __future__ import annotations

from collections import Counter

from pybuild.records import dataclass, renamed


@dataclass(frozen=True)
class LayerNoise:
    """A layer in the quantised model; short: its name for people.

    kind   int8 | int16 | float32
    snr    signal-to-noise ratio of its output in dB, of all that was lost up to it;
           None: nothing was
    """

    name: str
    short: str
    op: str
    kind: str
    snr: float | None


@renamed(why="reason")
@dataclass(frozen=True)
class StayedFloat:
    """A layer that was not quantised, and why."""

    name: str
    short: str
    op: str
    reason: str


@dataclass(frozen=True)
class Score:
    """Samples right of all, before and after."""

    samples: int
    right_float: int
    right_quantised: int


@dataclass(frozen=True)
class Quantisation:
    """The report of one quantisation.

    layers      all that compute, worst first
    error       root mean square of the outputs' error, of the outputs'
    score       None without labels
    loss        what --max-loss bounds: the share of samples lost; without labels
                `error`
    fitted      weights are rounded to the outputs of their layers on the samples
    warnings    why the calibration data looks wrong
    equalised   groups of tensors; 0: none, or it made the outputs worse
    """

    method: str
    samples: int
    measured_on: int
    boundary: str
    layers: tuple[LayerNoise, ...]
    floats: tuple[StayedFloat, ...]
    error: float
    score: Score | None
    loss: float
    fitted: bool
    equalised: int
    bias_corrected: bool
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        kinds = Counter(layer.kind for layer in self.layers)
        layers = ", ".join(f"{count} layers {kind}" for kind, count in kinds.items())
        return f"Quantisation({layers}, error {self.error:.2%})"
