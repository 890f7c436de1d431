"""Signal processing before a net that hears: window, energy, filter bank, noise, gain
and logarithm. In integers, as the signal library of TensorFlow Lite Micro computes
them; the Fourier transform is in fft.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.operator import Types, Values, invalid, operand, value

I16, I32, U32, U64 = DType.INT16, DType.INT32, DType.UINT32, DType.UINT64
# the logarithm's table: segments of an octave, and one over its unit
LOG_SEGMENTS, LOG_ONE = 128, 1 << 16
# round(ln(2) * LOG_ONE)
LN_2 = 45426
# entries of a gain table: 2, and 4 for each power of two of a uint32
GAINS = 4 * 32 - 3
# fractional bits of what is divided by noise, and of what pcan gives
SNR_BITS, PCAN_BITS = 12, 6


def log_table() -> Array:
    """[130] log2(1 + i / 128) - i / 128 in LOG_ONE; the last two are 0."""
    part = np.arange(LOG_SEGMENTS) / LOG_SEGMENTS
    rounded = np.floor((np.log2(1 + part) - part) * LOG_ONE + 0.5)
    return np.append(rounded, [0, 0]).astype(np.int16)


def _typed(node: Node, graph: Graph, *wanted: DType) -> list[Tensor]:
    """The operands, of these types.

    Errors  BuildError for others
    """
    found = [operand(node, graph, i) for i in range(len(wanted))]
    for tensor, dtype in zip(found, wanted, strict=True):
        if tensor.dtype is not dtype:
            what = f"'{tensor.name}' is {tensor.dtype.value}, not {dtype.value}"
            raise invalid(node, graph, what)
    return found


def _attr(node: Node, graph: Graph, name: str, most: int) -> int:
    number = int(node.attrs[name])
    if number > most:
        raise invalid(node, graph, f"{name} is {number}, at most {most}")
    return number


# ---- window, auto_scale, energy --------------------------------------------------


def infer_window(node: Node, graph: Graph) -> Types:
    """attrs shift. Shapes  x int16[.., N]  weights int16[N]  y int16[.., N]"""
    x, weights = _typed(node, graph, I16, I16)
    _attr(node, graph, "shift", 31)
    if len(weights.shape) != 1 or x.shape[-1:] != weights.shape:
        what = f"weights {list(weights.shape)} do not fit x {list(x.shape)}"
        raise invalid(node, graph, what)
    return ((x.shape, I16),)


def window(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """y = held((x * weights) >> shift)"""
    x, weights = (value(values, i).astype(np.int32) for i in (0, 1))
    made = (x * weights) >> int(node.attrs["shift"])
    return (np.clip(made, -(1 << 15), (1 << 15) - 1).astype(np.int16),)


def infer_auto_scale(node: Node, graph: Graph) -> Types:
    """Shapes  x int16[..]; y int16[..], of x shifted left so far that its largest
    number fills 15 bits, and so far int32[]; 0 where all are 0
    """
    (x,) = _typed(node, graph, I16)
    return (x.shape, I16), ((), I32)


def auto_scale(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """The largest is held in int16, which -32768 leaves: after it, it begins anew."""
    x = value(values, 0)
    most = 0
    for number in x.reshape(-1).tolist():
        if number > most:
            most = number
        elif -number > most:
            most = -number if number > -(1 << 15) else number
    bits = 0 if most <= 0 else 15 - most.bit_length()
    y = (x.astype(np.int32) << bits).astype(np.int16)
    return y, np.asarray(bits, np.int32)


def infer_energy(node: Node, graph: Graph) -> Types:
    """attrs start, end. Shapes  x int16[2N], real and imaginary parts;
    y uint32[N], 0 outside start .. end - 1
    """
    (x,) = _typed(node, graph, I16)
    if x.size % 2 or len(x.shape) != 1:
        raise invalid(node, graph, f"'{x.name}' {list(x.shape)} is not a row of pairs")
    if not int(node.attrs["start"]) <= _attr(node, graph, "end", x.size // 2):
        raise invalid(node, graph, "start lies after end")
    return (((x.size // 2,), U32),)


def energy(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """y = real * real + imaginary * imaginary"""
    start, end = int(node.attrs["start"]), int(node.attrs["end"])
    parts = value(values, 0).astype(np.int64).reshape(-1, 2)
    made = (parts * parts).sum(1).astype(np.uint32)
    made[:start], made[end:] = 0, 0
    return (made,)


# ---- channels ---------------------------------------------------------------------


def infer_filter_bank(node: Node, graph: Graph) -> Types:
    """Shapes  x uint32[F]  weights, unweights int16[W]  frequency starts, weight
    starts, widths int16[C+1], all constant; y uint64[C]
    """
    x, weights, unweights, *rows = _typed(node, graph, U32, *[I16] * 5)
    starts, places, widths = (graph.constants.get(t.name) for t in rows)
    if starts is None or places is None or widths is None:
        raise invalid(node, graph, "its channels are not constant")
    count = {t.shape for t in rows}
    fits = len(count) == 1 and len(rows[0].shape) == 1 and rows[0].size > 1
    fits &= weights.shape == unweights.shape and len(x.shape) == 1
    if not fits:
        shapes = ", ".join(str(list(t.shape)) for t in (x, weights, unweights, *rows))
        raise invalid(node, graph, f"{shapes} do not fit each other")
    low = min(int(a.min()) for a in (starts, places, widths))
    ends = [a.astype(int) + widths for a in (starts, places)]
    outside = [
        max(end.tolist()) > tensor.size
        for end, tensor in zip(ends, (x, weights), strict=True)
    ]
    if low < 0 or any(outside):
        raise invalid(node, graph, "a channel reads outside its input or weights")
    return (((rows[0].size - 1,), U64),)


def filter_bank(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """y[c] = what channel c + 1 weighs, and what channel c leaves (unweights)

    Sums wrap at 64 bits.
    """
    x, weights, unweights, starts, places, widths = (
        value(values, i).astype(np.int64) for i in range(6)
    )
    made, left = [], np.uint64(0)
    for start, place, width in zip(starts, places, widths, strict=True):
        energies = x[start : start + width].astype(np.uint64)
        mine, other = (
            (w[place : place + width].astype(np.uint64) * energies).sum(dtype=np.uint64)
            for w in (weights, unweights)
        )
        with np.errstate(over="ignore"):
            made.append(left + mine)
        left = other
    return (np.asarray(made[1:], np.uint64),)


def infer_square_root(node: Node, graph: Graph) -> Types:
    """Shapes  x uint64[C]  bits int32[]; y uint32[C] = root(x) >> bits"""
    x, bits = _typed(node, graph, U64, I32)
    if bits.size != 1:
        raise invalid(node, graph, f"'{bits.name}' is not a single number")
    return ((x.shape, U32),)


def _root(x: int) -> int:
    """The nearest integer; at most the greatest one of half as many bits."""
    low = _floor_root(x)
    most = 0xFFFF if x < 1 << 32 else 0xFFFFFFFF
    return min(low + (x - low * low > low), most)


def _floor_root(x: int) -> int:
    low = int(np.sqrt(float(x)))
    while low * low > x:
        low -= 1
    while (low + 1) * (low + 1) <= x:
        low += 1
    return low


def square_root(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    x, bits = value(values, 0), int(value(values, 1).reshape(-1)[0])
    roots = [_root(int(number)) for number in x.reshape(-1)]
    return ((np.asarray(roots, np.uint32) >> (bits & 31)).reshape(x.shape),)


def infer_spectral_subtraction(node: Node, graph: Graph) -> Types:
    """attrs smoothing, one_minus_smoothing: [of even, of odd channels],
    min_signal_remaining, smoothing_bits, bits, clamping.
    Shapes  x, noise uint32[C]; y uint32[C], the next noise
    """
    x, noise = _typed(node, graph, U32, U32)
    _attr(node, graph, "bits", 31), _attr(node, graph, "smoothing_bits", 31)
    if x.shape != noise.shape:
        what = f"noise {list(noise.shape)} of x {list(x.shape)}"
        raise invalid(node, graph, what)
    return (x.shape, U32), (x.shape, U32)


def spectral_subtraction(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """noise' = (x * smoothing + noise * one_minus_smoothing) >> bits, x and noise
    in 2^smoothing_bits; y = max(x - noise', x * min_signal_remaining >> bits)
    """
    x, noise = (value(values, i).astype(np.uint64) for i in (0, 1))
    bits, up = int(node.attrs["bits"]), int(node.attrs["smoothing_bits"])
    odd = np.arange(x.size).reshape(x.shape) % 2
    by, less = (
        np.asarray(node.attrs[n], np.uint64)[odd]
        for n in ("smoothing", "one_minus_smoothing")
    )
    scaled = (x << np.uint64(up)).astype(np.uint32).astype(np.uint64)
    new = ((scaled * by + noise * less) >> np.uint64(bits)).astype(np.uint32)
    held = np.minimum(new, scaled.astype(np.uint32))
    if node.attrs["clamping"]:
        new = held
    least = x * np.uint64(int(node.attrs["min_signal_remaining"]))
    floor = (least >> np.uint64(bits)).astype(np.uint32)
    less_noise = (scaled.astype(np.uint32) - held) >> np.uint32(up)
    return np.maximum(less_noise, floor), new


def infer_pcan(node: Node, graph: Graph) -> Types:
    """attrs snr_shift. Shapes  x, noise uint32[C]  gains int16[125]; y uint32[C]"""
    x, noise, gains = _typed(node, graph, U32, U32, I16)
    _attr(node, graph, "snr_shift", 63)
    if x.shape != noise.shape or len(gains.shape) != 1 or gains.size < GAINS:
        shapes = ", ".join(str(list(t.shape)) for t in (x, noise, gains))
        what = f"{shapes} do not fit; a table of gains has {GAINS} entries"
        raise invalid(node, graph, what)
    return ((x.shape, U32),)


def _gain(x: int, gains: Mapping[int, int]) -> int:
    """The gain in the table for a noise: a parabola for each power of two; int16."""
    if x <= 2:
        return gains[x]
    bits = x.bit_length()
    first = 4 * bits - 6
    part = (x << (11 - bits) if bits < 11 else x >> (bits - 11)) & 0x3FF
    made = ((gains[first + 2] * part) >> 5) + (gains[first + 1] << 5)
    made = _wrapped(_wrapped(made * part, 32) + (1 << 14), 32) >> 15
    return _wrapped(made + gains[first], 16)


def _wrapped(x: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (x + half) % (2 * half) - half


def pcan(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """snr = x * gain(noise) >> snr_shift; y = snr^2 / 4 below 2, snr - 1 from there"""
    x, noise = value(values, 0), value(values, 1)
    gains = dict(enumerate(value(values, 2).reshape(-1).tolist()))
    shift, made = int(node.attrs["snr_shift"]), []
    for number, level in zip(x.reshape(-1).tolist(), noise.reshape(-1), strict=True):
        gain = _gain(int(level), gains) % (1 << 32)
        snr = (number * gain % (1 << 64) >> shift) % (1 << 32)
        if snr < 2 << SNR_BITS:
            made.append(snr * snr >> (2 + 2 * SNR_BITS - PCAN_BITS))
        else:
            made.append((snr >> (SNR_BITS - PCAN_BITS)) - (1 << PCAN_BITS))
    return (np.asarray(made, np.uint32).reshape(x.shape),)


def infer_filter_bank_log(node: Node, graph: Graph) -> Types:
    """attrs correction_bits, scale. Shapes  x uint32[C]; y int16[C]"""
    (x,) = _typed(node, graph, U32)
    _attr(node, graph, "correction_bits", 31), _attr(node, graph, "scale", 2**31 - 1)
    return ((x.shape, I16),)


def filter_bank_log(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """y = held(ln(x << correction_bits) * scale); 0 of what is 1 or 0"""
    x, table = value(values, 0), log_table().tolist()
    up, scale = int(node.attrs["correction_bits"]), int(node.attrs["scale"])
    made = [_log((n << up) % (1 << 32), scale, table) for n in x.reshape(-1).tolist()]
    return (np.asarray(made, np.int16).reshape(x.shape),)


def _log(x: int, scale: int, table: list[int]) -> int:
    if x <= 1:
        return 0
    octave = x.bit_length() - 1
    part = x - (1 << octave)
    part = part << (16 - octave) if octave < 16 else part >> (octave - 16)
    segment, within = divmod(part, LOG_ONE // LOG_SEGMENTS)
    first, last = table[segment : segment + 2]
    log2 = (octave << 16) + part + first + ((last - first) * within >> 16)
    natural = (LN_2 * log2 + LOG_ONE // 2) >> 16
    scaled = (scale * natural + LOG_ONE // 2) % (1 << 32) >> 16
    return min(scaled, (1 << 15) - 1)


Meaning = Callable[[Node, Graph, Values], tuple[Array, ...]]
SIGNAL: dict[str, tuple[Callable[[Node, Graph], Types], Meaning]] = {
    "auto_scale": (infer_auto_scale, auto_scale),
    "energy": (infer_energy, energy),
    "filter_bank": (infer_filter_bank, filter_bank),
    "filter_bank_log": (infer_filter_bank_log, filter_bank_log),
    "pcan": (infer_pcan, pcan),
    "spectral_subtraction": (infer_spectral_subtraction, spectral_subtraction),
    "square_root": (infer_square_root, square_root),
    "window": (infer_window, window),
}
