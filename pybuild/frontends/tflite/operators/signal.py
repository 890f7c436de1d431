"""The signal library of TensorFlow Lite Micro: SignalWindow, SignalRfft, SignalFramer
and the others. What an operator keeps from run to run is state of the model.

Source  signal/micro/kernels of tflite-micro; options lie in a flexbuffer by name
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from pybuild.dtype import Array, DType
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.draft.variable import Variable
from pybuild.frontends.tflite.reader.flat import guarded
from pybuild.ir.graph import Attr, Tensor


class _Options:
    """Numbers in the operator's flexbuffer."""

    def __init__(self, call: Call) -> None:
        self.call = call
        root = guarded(call.where, lambda: flexbuffers.GetRoot(call.flat.custom).AsMap)
        self.fields: Any = root

    def __call__(self, name: str, least: int = 0, most: int = 2**31 - 1) -> int:
        """Errors  BuildError for one that is missing, or not from least to most"""
        try:
            number = int(self.fields[name].Value)
        except Exception:  # a damaged buffer fails in any way
            raise self.call.error(f"its option '{name}' is missing") from None
        if not least <= number <= most:
            what = f"its option '{name}' is {number}, not from {least} to {most}"
            raise self.call.error(what)
        return number


def _names(call: Call, count: int) -> tuple[str, ...]:
    return tuple(call.tensor(i).name for i in range(count))


def _kept(call: Call, title: str, initial: Array) -> tuple[Variable, Tensor]:
    """Return the state of this operator, and its value before the run.

    Errors  BuildError in a called subgraph
    """
    builder = call.builder
    if builder.inside:
        what = "keeps state in a subgraph that is called"
        raise call.error(what, "move it out of IF and WHILE")
    name = builder.fresh(f"{call.label}_{title}")
    tensor = builder.add(Tensor(name, initial.shape, DType.of(initial)))
    variable = builder.variables.setdefault(name, Variable())
    variable.state = variable.now = tensor
    variable.initial = initial
    return variable, tensor


def _second(call: Call, shape: tuple[int, ...]) -> Tensor:
    """Return the operator's second output, which the same node makes."""
    made = call.builder.add(call.output(shape, 1))
    call.builder.known[call.flat.outputs[1]] = made
    return made


# ---- one node each --------------------------------------------------------------


def _one(op: str, count: int, **attrs: str) -> Callable[[Call], None]:
    """Emit an operator with so many inputs; attributes: options of the file."""

    def made(call: Call) -> None:
        options = _Options(call) if attrs else None
        found: dict[str, Attr] = {}
        if options is not None:
            found = {name: options(option) for name, option in attrs.items()}
        call.emit(op, _names(call, count), found)

    return made


def _auto_scale(call: Call) -> None:
    names = _names(call, 1)
    bits = _second(call, ())
    call.emit("auto_scale", names, {}, more=(bits.name,))


def _rfft(call: Call) -> None:
    """Emit an RFFT; the output has real and imaginary parts of length / 2 + 1
    frequencies."""
    attrs: dict[str, Attr] = {"length": _Options(call)("fft_length"), "inverse": False}
    call.emit("rfft", _names(call, 1), attrs)


def _irfft(call: Call) -> None:
    attrs: dict[str, Attr] = {"length": _Options(call)("fft_length"), "inverse": True}
    call.emit("rfft", _names(call, 1), attrs)


def _spectral_subtraction(call: Call) -> None:
    option, (x,) = _Options(call), [call.tensor(0)]
    attrs: dict[str, Attr] = {
        "smoothing": (option("smoothing"), option("alternate_smoothing")),
        "one_minus_smoothing": (
            option("one_minus_smoothing"), option("alternate_one_minus_smoothing"),
        ),
        "min_signal_remaining": option("min_signal_remaining"),
        "smoothing_bits": option("smoothing_bits"),
        "bits": option("spectral_subtraction_bits"),
        "clamping": bool(option("clamping")),
    }  # fmt: skip
    variable, before = _kept(call, "noise", np.zeros(x.shape, np.uint32))
    after = _second(call, x.shape)
    call.emit("spectral_subtraction", (x.name, before.name), attrs, more=(after.name,))
    variable.now = after


# ---- samples that are kept -------------------------------------------------------


def _before(call: Call, flow: Flow, x: Tensor, count: int) -> Tensor:
    """Prepend the last `count` samples of earlier runs to x; they are 0 at first."""
    if not count:
        return x
    shape = (*x.shape[:-1], count)
    variable, before = _kept(call, "samples", np.zeros(shape, x.dtype.numpy))
    joined = flow.concat([before, x], len(shape) - 1)
    length = joined.shape[-1]
    variable.now = flow.part(joined, len(shape) - 1, length - count, length)
    return joined


def _turns(call: Call, flow: Flow, first: int, again: int) -> Tensor:
    """Return bool[]: true in the run after `first` runs, then in every `again`th."""
    if (first, again) == (0, 1):
        return flow.const(np.asarray(True))
    variable, wait = _kept(call, "wait", np.asarray(first, np.int32))
    none = flow.const(0, wait)
    ready = flow.map("less_or_equal", wait, none)
    less = flow.map("subtract", wait, flow.const(1, wait))
    variable.now = flow.map("where", ready, flow.const(again - 1, wait), less)
    return ready


def _framer(call: Call) -> None:
    """[.., n * step] -> [.., n, size]: frames that overlap; and whether all are there.

    Before the first whole frame, which `prefill` begins with zeros, TensorFlow Lite
    Micro leaves the output as it was; here it holds zeros and what has come.
    """
    option, flow, x = _Options(call), Flow(call), call.tensor(0)
    size, step = option("frame_size", 1), option("frame_step", 1)
    if not x.shape or x.shape[-1] % step or step > size:
        what = f"frames of {size}, every {step}, of {list(x.shape)}"
        raise call.error(what, "a multiple of frame_step, frames at least as long")
    whole = -(-size // step) * step
    prefill = option("prefill", 0, 1)
    held = (size if prefill else whole) - step
    joined, axis = _before(call, flow, x, held), len(x.shape) - 1
    frames = [
        flow.part(joined, axis, at, at + size) for at in range(0, x.shape[-1], step)
    ]
    shape = (*x.shape[:-1], 1, size)
    flow.give(flow.concat([flow.reshape(f, shape) for f in frames], axis))
    # frames that are missing at first; of a run, the first is the last to be there
    missing = 0 if prefill else whole // step - 1
    flow.give(_turns(call, flow, -(-missing // len(frames)), 1), 1)


def _stacker(call: Call) -> None:
    """[C] -> [(left + 1 + right) * C]: frames side by side, the first of all repeated
    to its left; and whether this run gives one.
    """
    option, flow, x = _Options(call), Flow(call), call.tensor(0)
    channels, step = option("num_channels", 1), option("stacker_step", 1)
    left, right = (
        option(f"stacker_{n}_context", 0, 1 << 15) for n in ("left", "right")
    )
    count = left + right + 1
    if x.shape != (channels,) or step > count:
        what = f"{count} frames of {channels}, every {step}, of {list(x.shape)}"
        raise call.error(what, "frames of num_channels, stacker_step at most as many")
    if count == 1:
        flow.give(x)
        flow.give(flow.const(np.asarray(True)), 1)
        return
    before = np.zeros((count - 1) * channels, x.dtype.numpy)
    variable, kept = _kept(call, "frames", before)
    first, begun = _kept(call, "begun", np.asarray(False))
    first.now = flow.map("copy", flow.const(np.asarray(True)))
    repeated = flow.concat([x] * (count - 1), 0)
    joined = flow.concat([flow.map("where", begun, kept, repeated), x], 0)
    variable.now = flow.part(joined, 0, channels, count * channels)
    flow.give(joined)
    flow.give(_turns(call, flow, right, step), 1)


def _delay(call: Call) -> None:
    """SignalDelay [.., n]: emit the input of so many samples before."""
    flow, x = Flow(call), call.tensor(0)
    if not x.shape:
        raise call.error(f"'{x.name}' has no axis of samples")
    joined = _before(call, flow, x, _Options(call)("delay_length"))
    flow.give(flow.part(joined, len(x.shape) - 1, 0, x.shape[-1]))


def _overlap_add(call: Call) -> None:
    """Overlap-add [.., n, size] -> [.., n * step]: add overlapping frames."""
    flow, x, step = Flow(call), call.tensor(0), _Options(call)("frame_step", 1)
    if len(x.shape) < 2 or step > x.shape[-1]:
        raise call.error(f"frames of {list(x.shape)}, every {step}")
    *outer, count, size = x.shape
    axis, rest = len(outer), size - step
    over, made = None, []
    variable = None
    if rest:
        variable, over = _kept(call, "rest", np.zeros((*outer, rest), x.dtype.numpy))
    for n in range(count):
        frame = flow.reshape(flow.part(x, axis, n, n + 1), (*outer, size))
        if over is not None:
            pads = [(0, 0)] * len(outer) + [(0, step)]
            frame = _added(flow, frame, flow.pad(over, pads))
        made.append(flow.part(frame, axis, 0, step))
        over = flow.part(frame, axis, step, size) if rest else None
    flow.give(flow.concat(made, axis))
    if variable is not None:
        variable.now = over


def _added(flow: Flow, a: Tensor, b: Tensor) -> Tensor:
    """Add, clamped to int16."""
    if a.dtype is not DType.INT16:
        return flow.add(a, b)
    a, b = (flow.cast(x, DType.INT32) for x in (a, b))
    return flow.cast(flow.held(flow.add(a, b), -(1 << 15), (1 << 15) - 1), DType.INT16)


SIGNAL: dict[str, Callable[[Call], None]] = {
    f"CUSTOM Signal{name}": function
    for name, function in {
        "Delay": _delay,
        "Energy": _one("energy", 1, start="start_index", end="end_index"),
        "FftAutoScale": _auto_scale,
        "FilterBank": _one("filter_bank", 6),
        "FilterBankLog": _one(
            "filter_bank_log", 1,
            correction_bits="input_correction_bits", scale="output_scale",
        ),
        "FilterBankSpectralSubtraction": _spectral_subtraction,
        "FilterBankSquareRoot": _one("square_root", 2),
        "Framer": _framer,
        "Irfft": _irfft,
        "OverlapAdd": _overlap_add,
        "PCAN": _one("pcan", 3, snr_shift="snr_shift"),
        "Rfft": _rfft,
        "Stacker": _stacker,
        "Window": _one("window", 2, shift="shift"),
    }.items()
}  # fmt: skip
# have two outputs
PAIRS = tuple(
    f"CUSTOM Signal{name}"
    for name in ("FftAutoScale", "FilterBankSpectralSubtraction", "Framer", "Stacker")
)
