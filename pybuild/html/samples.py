"""The results of a build on given samples: right or wrong, and each layer's error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybuild.records import dataclass


@dataclass(frozen=True)
class LayerError:
    """An output of a layer, over all samples.

    short     the layer's name for people
    low, high  the least and greatest real value; null: infinite or no number
    cut_off   share of values that in real numbers are half a step or more beyond what
              its integers reach; null: not known, or no integers
    unequal   integers that differ from the reference's, of all; null: it gives none
    max_abs   the greatest difference from the reference's, as stored; null: none given
    error     root mean square of how far it is off `beside`, by that of the values
              there; null: not known
    snr       the same as a ratio of signal to noise in dB; null: not known, or no error
    """

    name: str
    short: str
    op: str
    tensor: str
    dtype: str
    low: float | None
    high: float | None
    cut_off: float | None
    unequal: float | None
    max_abs: float | None
    error: float | None
    snr: float | None


@dataclass(frozen=True)
class SampleFacts:
    """count samples through a build, in kernels of this machine.

    labelled   whether the class of each sample is known
    reference  whose outputs are compared, with its version; tolerance: how far off they
               may be; ok: none is further; notes: what a reader must know
    unequal    values of outputs that are further from the reference's than that
    beside     what `error` of layers is measured beside
    classes    as crt check --data: accuracy, confusion and changes by who said which
               class; null: the first output is one number
    """

    count: int
    labelled: bool
    reference: str
    tolerance: str
    ok: bool
    notes: tuple[str, ...]
    unequal: int
    beside: str
    layers: tuple[LayerError, ...]
    classes: Mapping[str, Any] | None
