"""DFT and STFT: products with matrices of cosines and sines."""

from __future__ import annotations

import math

import numpy as np

from pybuild.frontends.onnx.elements import Handler, flowing
from pybuild.frontends.onnx.flow import Flow
from pybuild.frontends.onnx.resize import weighted


def _transformed(flow: Flow, x: str, axis: int, length: int, outputs: int) -> str:
    """x[.., 1 or 2], its last axis real and imaginary parts; always two come out."""
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


@flowing
def dft(flow: Flow) -> None:
    op, x = flow.op, flow.arg(0)
    rank = flow.rank(x)
    number = op.integer("axis", 1 if op.opset < 20 else -2)
    if flow.has(2):
        number = int(flow.value(2, "axis").reshape(()))
    axis = flow.axis(number, rank)
    length = flow.shape(x)[axis]
    if flow.has(1):
        length = int(flow.value(1, "dft_length").reshape(()))
    inverse, half = (bool(op.integer(k, 0)) for k in ("inverse", "onesided"))
    if inverse:
        raise op.invalid("the inverse transformation is not supported")
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
    count = (flow.shape(x)[1] - length) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(length)[None]
    frames = flow.taken(x, places, 1)
    if window:
        frames = flow.mul(frames, flow.reshape(window, (1, 1, length, 1)))
    outputs = length // 2 + 1 if op.integer("onesided", 1) else length
    flow.give(_transformed(flow, frames, 2, length, outputs))


SIGNAL: dict[str, Handler] = {"DFT": dft, "STFT": stft}
