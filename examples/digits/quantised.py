"""From a trained network to int8: weights per output channel, activations per
tensor by their range on the training images. Knows nothing of files.
"""

from __future__ import annotations

from dataclasses import dataclass

import network
import numpy as np
import numpy.typing as npt
from network import F32, Parameters

# conv, depthwise and pointwise have a scale per output channel; dense has one,
# the usual form on small devices
LAYERS = (
    ("conv", "image", "conv", True),
    ("depthwise", "conv", "depthwise", True),
    ("pointwise", "depthwise", "pointwise", True),
    ("dense", "flat", "scores", False),
)
# these move values and keep the quantisation of what they read
SAME_AS = {"pool": "pointwise", "flat": "pointwise"}


@dataclass(frozen=True)
class Activation:
    """real = scale * (q - zero_point), q int8."""

    scale: np.float32
    zero_point: int


@dataclass(frozen=True)
class Weights:
    """real = scale * w along the last axis of w; bias scale = input scale * scale.

    Shapes  w int8[..., O]  scale float32[O] or float32[1]  bias int32[O]
    """

    w: npt.NDArray[np.int8]
    scale: F32
    bias: npt.NDArray[np.int32]
    bias_scale: F32


@dataclass(frozen=True)
class Quantised:
    activations: dict[str, Activation]
    layers: dict[str, Weights]


def activation(values: F32) -> Activation:
    """The 256 steps that cover `values` and zero."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    scale = np.float32((high - low) / 255)
    return Activation(scale, round(-128 - low / float(scale)))


def weights(w: F32, bias: F32, per_channel: bool, reads: Activation) -> Weights:
    """w in -127..127 around zero; the last axis of w is the output channel."""
    axes = tuple(range(w.ndim - 1)) if per_channel else None
    top = np.atleast_1d(np.abs(w).max(axis=axes))
    scale = (top / 127).astype(np.float32)
    bias_scale = (scale * reads.scale).astype(np.float32)
    return Weights(
        np.clip(np.rint(w / scale), -127, 127).astype(np.int8),
        scale,
        np.rint(bias / bias_scale.astype(np.float64)).astype(np.int32),
        bias_scale,
    )


def quantised(p: Parameters, calibration: F32) -> Quantised:
    """The int8 form of a network, by its ranges on the calibration images."""
    seen = network.forward(p, calibration)
    acts = {name: activation(value) for name, value in seen.items()}
    for name, source in SAME_AS.items():
        acts[name] = acts[source]
    layers = {
        name: weights(p[f"{name}_w"], p[f"{name}_b"], per_channel, acts[reads])
        for name, reads, _, per_channel in LAYERS
    }
    return Quantised(acts, layers)
