"""DFT and STFT: products with matrices of cosines and sines; MelWeightMatrix."""

from __future__ import annotations

import math

import numpy as np

from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing, onnx_type
from pybuild.frontends.onnx.operators.resize import weighted


def _transformed(flow: Flow, x: str, axis: int, length: int, outputs: int) -> str:
    """Transform x[.., 1 or 2], whose last axis is (real, imaginary); the result has
    both parts."""
    last, size = flow.rank(x) - 1, flow.shape(x)[axis]
    x = flow.slice(x, axis, 0, length)
    pads = [(0, 0)] * (last + 1)
    pads[axis] = (0, max(length - size, 0))
    x = flow.pad(x, pads)
    turns = np.outer(np.arange(outputs), np.arange(length)) % length
    angle = 2 * math.pi * turns / length
    cosine, sine = np.cos(angle), np.sin(angle)
    real = flow.slice(x, last, 0, 1)
    parts = [weighted(flow, real, axis, m) for m in (cosine, -sine)]
    if flow.shape(x)[last] == 2:
        other = flow.slice(x, last, 1, 2)
        more = [weighted(flow, other, axis, m) for m in (sine, cosine)]
        parts = [flow.add(a, b) for a, b in zip(parts, more, strict=True)]
    return flow.concat(parts, last)


def _real_values(flow: Flow, x: str, axis: int, length: int) -> str:
    """Return the real inverse of a one-sided spectrum, whose other half is its mirror
    image."""
    last = flow.rank(x) - 1
    used = min(flow.shape(x)[axis], length // 2 + 1)
    x = flow.slice(x, axis, 0, used)
    angle = 2 * math.pi * (np.outer(np.arange(length), np.arange(used)) % length)
    # all but the first, and the middle of an even length, stand for two
    middle = length // 2 if length % 2 == 0 else -1
    weight = np.where(np.isin(np.arange(used), (0, middle)), 1, 2) / length
    real = flow.slice(x, last, 0, 1)
    made = weighted(flow, real, axis, np.cos(angle / length) * weight)
    if flow.shape(x)[last] == 2:
        other = flow.slice(x, last, 1, 2)
        more = weighted(flow, other, axis, -np.sin(angle / length) * weight)
        made = flow.add(made, more)
    return made


@flowing
def dft(flow: Flow) -> None:
    op, x = flow.op, flow.arg(0)
    rank = flow.rank(x)
    number = op.integer("axis", 1 if op.opset < 20 else -2)
    if flow.has(2):
        number = int(flow.value(2, "axis").reshape(()))
    axis = flow.axis(number, rank)
    inverse, half = (bool(op.integer(k, 0)) for k in ("inverse", "onesided"))
    length = flow.shape(x)[axis]
    if inverse and half:
        length = 2 * (length - 1)
    if flow.has(1):
        length = int(flow.value(1, "dft_length").reshape(()))
    if length < 1:
        raise op.invalid("it has no elements to transform")
    if inverse and not half:
        # ONNX's two cases of it expect the rounding of numpy's float32 FFT: 2e-6
        # where the exact value is 0, with a tolerance of 1e-7
        what = "the inverse of a whole spectrum is not supported"
        raise op.invalid(what, "onesided=1 gives real values")
    if inverse:
        flow.give(_real_values(flow, x, axis, length))
        return
    outputs = length // 2 + 1 if half else length
    flow.give(_transformed(flow, x, axis, length, outputs))


@flowing
def stft(flow: Flow) -> None:
    op, x = flow.op, flow.arg(0)
    step = int(flow.value(1, "frame_step").reshape(()))
    window = flow.arg(2) if flow.has(2) else ""
    if flow.has(3):
        length = int(flow.value(3, "frame_length").reshape(()))
    elif window:
        length = flow.shape(window)[0]
    else:
        raise op.invalid("it has neither a window nor a frame_length")
    if len(flow.shape(x)) == 2:  # as torch.onnx writes it: real numbers, no last axis
        x = flow.reshape(x, (*flow.shape(x), 1))
    count = (flow.shape(x)[1] - length) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(length)[None]
    frames = flow.taken(x, places, 1)
    if window:
        frames = flow.mul(frames, flow.reshape(window, (1, 1, length, 1)))
    outputs = length // 2 + 1 if op.integer("onesided", 1) else length
    flow.give(_transformed(flow, frames, 2, length, outputs))


@flowing
def mel_weights(flow: Flow) -> None:
    """MelWeightMatrix: triangles over the bins of a spectrum, evenly spaced on the mel
    scale."""
    names = ("bands", "DFT length", "sample rate", "lower edge", "upper edge")
    values = [flow.value(n, name).reshape(()).item() for n, name in enumerate(names)]
    bands, length, rate = (int(v) for v in values[:3])
    edges = 2595 * np.log1p(np.asarray(values[3:], np.float64) / 700) / np.log(10)
    step = (edges[1] - edges[0]) / (bands + 2)
    at = 700 * np.expm1((np.arange(bands + 2) * step + edges[0]) / 2595 * np.log(10))
    bins = ((length + 1) * at // rate).astype(np.int64)
    made = np.zeros((length // 2 + 1, bands))
    place = np.arange(len(made))
    for band in range(bands):
        low, middle, high = bins[band : band + 3].tolist()
        rise = (place - low) / max(middle - low, 1) + (low == middle)
        fall = (high - place) / max(high - middle, 1)
        up, down = (
            (low <= place) & (place <= middle),
            (middle <= place) & (place < high),
        )
        made[:, band] = np.where(down, fall, np.where(up, rise, 0))
    kind = onnx_type(flow.op, flow.op.integer("output_datatype", 1))
    flow.give(flow.const(made, kind))


SIGNAL: dict[str, Handler] = {"DFT": dft, "MelWeightMatrix": mel_weights, "STFT": stft}
