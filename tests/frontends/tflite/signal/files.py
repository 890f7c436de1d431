"""Files of TensorFlow Lite Micro's signal operators, drawn by name.
micro.json holds what its kernels make of them; where tflite-micro is installed
`python -m tests.frontends.tflite.signal.files` writes it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from pybuild.dtype import Array
from tests.conftest import ROOT
from tests.ops.tflite_writer import FileOperator, FileTensor, write

PAGE = ROOT / "tests" / "frontends" / "tflite" / "signal" / "micro.json"
RUNS, CHANNELS = 9, 40
Given = tuple[tuple[int, ...], str, Array | None]
_T = {"INT16": 7, "INT32": 2}
_NOISE = {
    "alternate_one_minus_smoothing": 15565, "alternate_smoothing": 819,
    "min_signal_remaining": 819, "num_channels": CHANNELS,
    "one_minus_smoothing": 15974, "smoothing": 410, "smoothing_bits": 10,
    "spectral_subtraction_bits": 14,
}  # fmt: skip


@dataclass(frozen=True)
class Signal:
    """A file, its inputs run by run, and how many outputs it has.

    valid  the last output says whether the others mean something
    """

    data: bytes
    samples: Sequence[Sequence[Array]]
    outputs: int
    valid: bool = False


def _file(code: str, given: list[Given], outs: list[Given], options: Any) -> bytes:
    tensors = [
        FileTensor(f"{prefix}{i}", shape, kind, data)
        for prefix, rows in (("x", given), ("y", outs))
        for i, (shape, kind, data) in enumerate(rows)
    ]
    count = len(given)
    made = tuple(range(count, len(tensors)))
    custom = bytes(flexbuffers.Dumps(options))
    operator = FileOperator(f"Signal{code}", tuple(range(count)), made, custom=custom)
    reads = [i for i, (_, _, data) in enumerate(given) if data is None]
    return write(tensors, [operator], reads, list(made))


class _Draw:
    """Numbers of every size: most are small in some runs, large in others."""

    def __init__(self, name: str) -> None:
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def ints(self, shape: tuple[int, ...], kind: str = "int16") -> Array:
        info = np.iinfo(kind)
        drawn = self.rng.integers(info.min, info.max, shape, endpoint=True)
        made = (drawn * 10.0 ** -self.rng.uniform(0, 4)).astype(kind)
        return np.asarray(made)

    def unsigned(self, count: int, bits: int) -> Array:
        drawn = self.rng.integers(0, 1 << 64, count, np.uint64)
        down = self.rng.integers(64 - bits, 64, count).astype(np.uint64)
        return (drawn >> down).astype(f"uint{max(32, bits)}")


def _window(draw: _Draw) -> Signal:
    weights = (32767 * np.hanning(480)).astype(np.int16) >> 3
    given: list[Given] = [((2, 480), "INT16", None), ((480,), "INT16", weights)]
    data = _file("Window", given, [((2, 480), "INT16", None)], {"shift": 11})
    return Signal(data, [[draw.ints((2, 480))] for _ in range(RUNS)], 1)


def _auto_scale(draw: _Draw) -> Signal:
    outs: list[Given] = [((64,), "INT16", None), ((), "INT32", None)]
    data = _file("FftAutoScale", [((64,), "INT16", None)], outs, {})
    runs = [draw.ints((64,)) for _ in range(RUNS)]
    runs[0][:], runs[1][3], runs[2][:], runs[3][:8] = 0, -32768, -32768, -32768
    return Signal(data, [[x] for x in runs], 2)


def _fft(draw: _Draw, length: int, kind: str, inverse: bool) -> Signal:
    given = length + 2 if inverse else length - length // 8
    made = length if inverse else length + 2
    data = _file(
        "Irfft" if inverse else "Rfft", [((2, given), kind, None)],
        [((2, made), kind, None)], {"T": _T[kind], "fft_length": length},
    )  # fmt: skip
    runs = [draw.ints((2, given), kind.lower()) for _ in range(RUNS)]
    low, high = np.iinfo(kind.lower()).min, np.iinfo(kind.lower()).max
    runs[0][:], runs[1][:], runs[2][:, ::2] = low, high, low
    return Signal(data, [[x] for x in runs], 1)


def _energy(draw: _Draw) -> Signal:
    options = {"start_index": 0, "end_index": 33}
    outs: list[Given] = [((33,), "UINT32", None)]
    data = _file("Energy", [((66,), "INT16", None)], outs, options)
    runs = [draw.ints((66,)) for _ in range(RUNS)]
    runs[0][:] = -32768
    return Signal(data, [[x] for x in runs], 1)


def _filter_bank(draw: _Draw) -> Signal:
    widths = draw.rng.integers(0, 9, CHANNELS + 1).astype(np.int16)
    places = np.cumsum(np.append(0, widths[:-1])).astype(np.int16)
    taps = int(widths.sum())
    rows = [
        draw.ints((taps,)),
        draw.ints((taps,)),
        places + np.int16(3),
        places,
        widths,
    ]
    given: list[Given] = [((taps + 5,), "UINT32", None)]
    given += [(row.shape, "INT16", row) for row in rows]
    outs: list[Given] = [((CHANNELS,), "UINT64", None)]
    data = _file("FilterBank", given, outs, {"num_channels": CHANNELS})
    return Signal(data, [[draw.unsigned(taps + 5, 32)] for _ in range(RUNS)], 1)


def _square_root(draw: _Draw) -> Signal:
    given: list[Given] = [((CHANNELS,), "UINT64", None), ((), "INT32", None)]
    outs: list[Given] = [((CHANNELS,), "UINT32", None)]
    runs = [draw.unsigned(CHANNELS, 64) for _ in range(RUNS)]
    edges = [0, 1, 2, 2**32 - 1, 2**32, 2**64 - 1, 65535 * 65536, 65535 * 65536 + 1]
    runs[0][:8] = edges
    data = _file("FilterBankSquareRoot", given, outs, {})
    samples = [[x, np.asarray(i * 2, np.int32)] for i, x in enumerate(runs)]
    return Signal(data, samples, 1)


def _subtraction(draw: _Draw, clamping: bool) -> Signal:
    shape: Given = ((CHANNELS,), "UINT32", None)
    options = {**_NOISE, "clamping": clamping}
    data = _file("FilterBankSpectralSubtraction", [shape], [shape, shape], options)
    return Signal(data, [[draw.unsigned(CHANNELS, 8 + 3 * i)] for i in range(RUNS)], 2)


def _pcan(draw: _Draw, shift: int) -> Signal:
    shape: Given = ((CHANNELS,), "UINT32", None)
    gains: Given = ((125,), "INT16", draw.ints((125,)))
    data = _file("PCAN", [shape, shape, gains], [shape], {"snr_shift": shift})
    runs = [[draw.unsigned(CHANNELS, 32) for _ in "xn"] for _ in range(RUNS)]
    runs[0][1][:] = np.arange(CHANNELS)
    return Signal(data, runs, 1)


def _log(draw: _Draw, bits: int, scale: int) -> Signal:
    options = {"input_correction_bits": bits, "output_scale": scale}
    shape: Given = ((256,), "UINT32", None)
    outs: list[Given] = [((256,), "INT16", None)]
    data = _file("FilterBankLog", [shape], outs, options)
    runs = [draw.unsigned(256, 32) for _ in range(RUNS)]
    runs[0][:] = np.arange(256)
    runs[1][:] = 65536 + 512 * np.arange(256) // 2  # each segment of an octave
    return Signal(data, [[x] for x in runs], 1)


def _framer(
    draw: _Draw, shape: tuple[int, ...], size: int, step: int, fill: bool
) -> Signal:
    count = shape[-1] // step
    options = {"frame_size": size, "frame_step": step, "prefill": fill}
    outs: list[Given] = [
        ((*shape[:-1], count, size), "INT16", None), ((), "BOOL", None)
    ]  # fmt: skip
    data = _file("Framer", [(shape, "INT16", None)], outs, options)
    return Signal(data, [[draw.ints(shape)] for _ in range(RUNS)], 2, True)


def _stacker(draw: _Draw, left: int, right: int, step: int) -> Signal:
    options = {
        "num_channels": 7, "stacker_left_context": left,
        "stacker_right_context": right, "stacker_step": step,
    }  # fmt: skip
    wide = (7 * (left + right + 1),)
    outs: list[Given] = [(wide, "INT16", None), ((), "BOOL", None)]
    data = _file("Stacker", [((7,), "INT16", None)], outs, options)
    return Signal(data, [[draw.ints((7,))] for _ in range(RUNS)], 2, True)


def _delay(draw: _Draw, length: int) -> Signal:
    shape: Given = ((2, 10), "INT16", None)
    data = _file("Delay", [shape], [shape], {"delay_length": length})
    return Signal(data, [[draw.ints((2, 10))] for _ in range(RUNS)], 1)


def _overlap_add(draw: _Draw, shape: tuple[int, ...], step: int) -> Signal:
    outs: list[Given] = [((*shape[:-2], shape[-2] * step), "INT16", None)]
    options = {"T": _T["INT16"], "frame_step": step}
    data = _file("OverlapAdd", [(shape, "INT16", None)], outs, options)
    return Signal(data, [[draw.ints(shape)] for _ in range(RUNS)], 1)


_MAKERS: dict[str, Any] = {
    "window": _window, "auto_scale": _auto_scale, "energy": _energy,
    "filter_bank": _filter_bank, "square_root": _square_root,
    "subtraction": lambda d: _subtraction(d, False),
    "subtraction_clamped": lambda d: _subtraction(d, True),
    "pcan": lambda d: _pcan(d, 6), "pcan_far": lambda d: _pcan(d, 40),
    "log": lambda d: _log(d, 3, 64), "log_steep": lambda d: _log(d, 8, 2**31 - 1),
    "framer": lambda d: _framer(d, (1, 160), 400, 160, True),
    "framer_late": lambda d: _framer(d, (320,), 400, 160, False),
    "framer_many": lambda d: _framer(d, (3, 80), 50, 20, False),
    "framer_whole": lambda d: _framer(d, (160,), 160, 160, False),
    "stacker": lambda d: _stacker(d, 1, 1, 2),
    "stacker_late": lambda d: _stacker(d, 2, 3, 3),
    "stacker_alone": lambda d: _stacker(d, 0, 0, 1),
    "delay": lambda d: _delay(d, 5), "delay_long": lambda d: _delay(d, 30),
    "overlap": lambda d: _overlap_add(d, (2, 3, 8), 5),
    "overlap_none": lambda d: _overlap_add(d, (1, 8), 8),
    **{
        f"{'i' * inverse}rfft_{kind.lower()}_{length}": (
            lambda d, n=length, k=kind, i=inverse: _fft(d, n, k, i)
        )
        for kind in ("INT16", "INT32")
        for inverse in (False, True)
        for length in (4, 8, 16, 64, 512)
    },
}  # fmt: skip
NAMES = tuple(_MAKERS)


@cache
def drawn(name: str) -> Signal:
    made: Signal = _MAKERS[name](_Draw(name))
    return made


def mark(runs: Sequence[Sequence[Array]], valid: bool) -> int:
    """One number for all outputs of all runs that mean something."""
    said = [[*run[:-1], run[-1]] if not valid or run[-1] else run[-1:] for run in runs]
    flat = [np.ascontiguousarray(y) for run in said for y in run]
    return zlib.crc32(b"".join(y.tobytes() for y in flat))


@cache
def page() -> dict[str, int]:
    """A name -> the mark of what tflite-micro makes of the file."""
    found: dict[str, int] = json.loads(PAGE.read_text())
    return found


# ---- where tflite-micro is installed --------------------------------------------


def theirs(one: Signal) -> list[list[Array]]:
    from tflite_micro import runtime  # type: ignore[import-not-found]

    net = runtime.Interpreter.from_bytes(one.data, arena_size=1 << 20)
    made = []
    for sample in one.samples:
        for index, x in enumerate(sample):
            net.set_input(x, index)
        net.invoke()
        made.append([np.array(net.get_output(i)) for i in range(one.outputs)])
    return made


if __name__ == "__main__":
    from tests.frontends.tflite.signal.preprocessor import preprocessor

    every = {name: drawn(name) for name in NAMES}
    every |= {f"preprocessor_{kind}": preprocessor(kind) for kind in ("int8", "float")}
    marks = {name: mark(theirs(one), one.valid) for name, one in every.items()}
    PAGE.write_text(json.dumps(marks, indent=0) + "\n")
