"""The signal processing before a net that hears, in integers: channel by channel,
sample by sample.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    BOOL,
    INT16,
    INT32,
    INT64,
    UINT32,
    UINT64,
    Expr,
    Intrin,
    Var,
    cast,
    const,
    equal,
    i32,
    load,
    maximum,
    minimum,
    offset,
    select,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed, whole
from pybuild.kernels.base.operands import Operands, whole_operands
from pybuild.ops.signal import (
    GAINS,
    LN_2,
    LOG_ONE,
    LOG_SEGMENTS,
    PCAN_BITS,
    SNR_BITS,
    log_table,
)
from pybuild.targets.target import Target

_LOW, _HIGH = INT16.low, INT16.high


def _u32(value: Expr | int) -> Expr:
    return cast(value, UINT32)


def _u64(value: Expr | int) -> Expr:
    return cast(value, UINT64)


def _least(a: Expr, b: Expr) -> Expr:
    """The lesser of two unsigned numbers."""
    return select(a < b, a, b)


def _bits_of() -> Intrin:
    """Halves that are empty are left out, one after the other."""
    x = Var("x", UINT32)
    lets: list[tuple[Var, Expr]] = []
    rest: Expr = x
    found: Expr = const(0)
    for step in (16, 8, 4, 2, 1):
        above = Var(f"above{step}", BOOL)
        bits, left = Var(f"bits{step}", INT32), Var(f"left{step}", UINT32)
        lets += [
            (above, rest > _u32((1 << step) - 1)),
            (bits, select(above, found + step, found)),
            (left, select(above, rest >> step, rest)),
        ]
        found, rest = bits, left
    doc = "How many bits a number has; 0 of 0."
    return Intrin("crt_bits_of", (x,), found + i32(rest), tuple(lets), doc=doc)


# 32 - leading zeros
BITS_OF = _bits_of()


class Writer:
    """One kernel of whole tensors."""

    def __init__(self, node: Node, graph: Graph, computes: str) -> None:
        self.node, self.graph = node, graph
        self.operands: Operands = whole_operands(node, graph)
        self.outputs = [graph.tensor(name) for name in node.outputs]
        self.k = Builder(node.op, told(computes, "first to last"))
        self.to = [
            self.k.row(f"y{i or ''}", i, tensor.dtype, writable=True)
            for i, tensor in enumerate(self.outputs)
        ]
        self.tables: list[Packed] = []

    def x(self, index: int, name: str) -> Var:
        """An input; constants follow what is computed."""
        number = self.operands.numbers[index] + len(self.outputs) - 1
        return self.k.row(
            name, number, self.graph.tensor(self.node.inputs[index]).dtype
        )

    def table(self, name: str, array: Array, order: str) -> Var:
        number = self.operands.after + len(self.outputs) - 1 + len(self.tables)
        packed = Packed(name, array, order=order)
        self.tables.append(packed)
        return self.k.row(name, number, INT16)

    def number(self, name: str) -> Expr:
        """An attribute of the node."""
        return self.k.arg(name, int(self.node.attrs[name]))

    def written(self, cost: int, in_place: Sequence[int] = ()) -> list[Candidate]:
        made = Candidate(
            func=self.k.finish(in_place=bool(in_place)),
            args=tuple(self.k.values),
            outputs=tuple(whole(tensor) for tensor in self.outputs),
            inputs=self.operands.inputs,
            constants=(*self.operands.constants, *self.tables),
            in_place=tuple(in_place),
            cost=cost,
        )
        return [made]


def window(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for window."""
    w = Writer(node, graph, "y = held((x * weights) >> shift), int16")
    k, (y,), size = w.k, w.outputs, graph.tensor(node.inputs[1]).size
    x, weights, shift = w.x(0, "x"), w.x(1, "weights"), w.number("shift")
    n = k.arg("size", size)
    with k.loop("r", k.arg("rows", y.size // size)) as r:
        base = k.let("base", r * n)
        with k.loop("i", n) as i:
            scaled = (i32(load(x, base + i)) * i32(load(weights, i))) >> shift
            held = maximum(minimum(k.let("scaled", scaled), _HIGH), _LOW)
            k.store(w.to[0], base + i, cast(held, INT16))
    return w.written(8 * y.size)


def auto_scale(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for auto_scale."""
    text = "y = x << bits, so that the largest number fills 15 bits, int16; bits"
    w = Writer(node, graph, text)
    k, x, size = w.k, w.x(0, "x"), w.outputs[0].size
    n = k.arg("size", size)
    most = k.let("most", const(0))
    with k.loop("i", n) as i:
        value = k.let("value", i32(load(x, i)))
        with k.when(value > most):
            k.assign(most, value)
        with k.otherwise(), k.when(0 - value > most):
            # -(-32768) is -32768 again
            k.assign(most, i32(cast(0 - value, INT16)))
    used = BITS_OF(_u32(maximum(most, 0)))
    bits = k.let("bits", select(most < 1, const(0), 15 - used))
    k.store(w.to[1], 0, bits)
    factor = k.let("factor", const(1) << bits)
    with k.loop("j", n) as j:
        k.store(w.to[0], j, cast(i32(load(x, j)) * factor, INT16))
    return w.written(14 * size)


def energy(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for energy."""
    text = "y = real * real + imaginary * imaginary, int16 to uint32; 0 outside a range"
    w = Writer(node, graph, text)
    k, x, size = w.k, w.x(0, "x"), w.outputs[0].size
    start, end = w.number("start"), w.number("end")
    with k.loop("a", k.arg("size", size)) as a:
        k.store(w.to[0], a, const(0, UINT32))
    with k.loop("i", end, start) as i:
        parts = (k.let(n, i32(load(x, 2 * i + at))) for at, n in enumerate("rm"))
        real, imaginary = (_u32(part * part) for part in parts)
        k.store(w.to[0], i, real + imaginary)
    return w.written(10 * size)


def filter_bank(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for filter_bank."""
    text = (
        "y[c] = what channel c + 1 weighs of x, and channel c leaves, uint32 to uint64"
    )
    w = Writer(node, graph, text)
    names = ("x", "weights", "unweights", "starts", "places", "widths")
    x, weights, unweights, starts, places, widths = (
        w.x(i, name) for i, name in enumerate(names)
    )
    k, taps = w.k, int(graph.constants[node.inputs[5]].sum())
    left = k.let("left", const(0, UINT64))
    with k.loop("c", k.arg("channels", w.outputs[0].size + 1)) as c:
        energies = k.let("energies", offset(x, i32(load(starts, c))))
        first = k.let("first", i32(load(places, c)))
        mine, other = k.let("mine", left), k.let("other", const(0, UINT64))
        rows = [
            k.let(n, offset(p, first)) for n, p in (("a", weights), ("b", unweights))
        ]
        with k.loop("i", i32(load(widths, c))) as i:
            value = k.let("value", _u64(load(energies, i)))
            for total, row in zip((mine, other), rows, strict=True):
                k.assign(total, total + _u64(cast(load(row, i), INT64)) * value)
        with k.when(c > 0):  # of the first nothing is kept but what it leaves
            k.store(w.to[0], c - 1, mine)
        k.assign(left, other)
    return w.written(24 * taps + 30 * w.outputs[0].size)


def square_root(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for square_root."""
    text = "y = the nearest root of x, >> bits, uint64 to uint32; digit by digit"
    w = Writer(node, graph, text)
    k, x, bits = w.k, w.x(0, "x"), w.x(1, "bits")
    down = k.let("down", i32(load(bits)) & 31)
    with k.loop("c", k.arg("size", w.outputs[0].size)) as c:
        number = k.let("number", load(x, c))
        high, low = k.let("high", _u32(number >> 32)), k.let("low", _u32(number))
        narrow = k.let("narrow", equal(high, 0))
        used = BITS_OF(select(narrow, low, high))
        count = k.let("count", select(narrow, used, used + 32))
        # the highest even bit that the number has, and a turn for each below
        turns = k.let("turns", (count + 1) >> 1)
        bit = k.let("bit", const(1, UINT64) << cast(maximum(turns - 1, 0) * 2, UINT64))
        rest, root = k.let("rest", number), k.let("root", const(0, UINT64))
        with k.loop("t", turns):
            both = k.let("both", root + bit)
            fits = k.let("fits", both <= rest)
            k.assign(rest, select(fits, rest - both, rest))
            k.assign(root, select(fits, (root >> 1) + bit, root >> 1))
            k.assign(bit, bit >> 2)
        most = select(narrow, _u64(0xFFFF), _u64(0xFFFFFFFF))
        up = select(root < rest, root + 1, root)
        nearest = k.let("nearest", _least(k.let("up", up), most))
        k.store(w.to[0], c, _u32(nearest) >> _u32(down))
    return w.written(500 * w.outputs[0].size)


def spectral_subtraction(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for spectral_subtraction."""
    text = "noise is smoothed over time and taken off x, but for a part of x, uint32"
    w = Writer(node, graph, text)
    k, x, noise = w.k, w.x(0, "x"), w.x(1, "noise")
    parts = {
        name: [
            k.arg(f"{which}_{name}", int(number))
            for which, number in zip(("even", "odd"), node.attrs[name], strict=True)
        ]
        for name in ("smoothing", "one_minus_smoothing")
    }
    remaining, up = w.number("min_signal_remaining"), w.number("smoothing_bits")
    down = k.let("down", _u64(w.number("bits")))
    with k.loop("c", k.arg("size", w.outputs[0].size)) as c:
        value = k.let("value", load(x, c))
        scaled = k.let("scaled", value << _u32(up))
        even = k.let("even", equal(c & 1, 0))
        by, less = (
            _u64(select(even, *parts[name]))
            for name in ("smoothing", "one_minus_smoothing")
        )
        smoothed = (_u64(scaled) * by + _u64(load(noise, c)) * less) >> down
        new = k.let("new", _u32(smoothed))
        held = k.let("held", _least(new, scaled))
        k.store(w.to[1], c, held if node.attrs["clamping"] else new)
        floor = k.let("floor", _u32((_u64(value) * _u64(remaining)) >> down))
        rest = k.let("rest", (scaled - held) >> _u32(up))
        k.store(w.to[0], c, select(rest < floor, floor, rest))
    return w.written(40 * w.outputs[0].size)


def pcan(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for pcan."""
    text = "snr = x * gain(noise) >> shift; y = snr^2 / 4 below 2, snr - 1 from there"
    w = Writer(node, graph, text)
    k, x, noise, gains = w.k, w.x(0, "x"), w.x(1, "noise"), w.x(2, "gains")
    shift = k.let("shift", _u64(w.number("snr_shift")))
    with k.loop("c", k.arg("size", w.outputs[0].size)) as c:
        gain = _gain(k, gains, k.let("level", load(noise, c)))
        product = _u64(load(x, c)) * _u64(_u32(gain))
        snr = k.let("snr", _u32(product >> shift))
        small = (snr * snr) >> (2 + 2 * SNR_BITS - PCAN_BITS)
        large = (snr >> (SNR_BITS - PCAN_BITS)) - (1 << PCAN_BITS)
        k.store(w.to[0], c, select(snr < _u32(2 << SNR_BITS), small, large))
    return w.written(70 * w.outputs[0].size)


def _gain(k: Builder, gains: Expr, level: Expr) -> Expr:
    """A parabola for each power of two; sums wrap as int32."""
    bits = k.let("bits", BITS_OF(level))
    first = k.let("first", select(level < 3, i32(level), 4 * bits - 6))
    # of the first three numbers the entry itself: no square, no slope
    one, two = (
        k.let(
            name,
            select(
                level < 3, const(0), i32(load(gains, minimum(first + at, GAINS - 1)))
            ),
        )
        for name, at in (("slope", 1), ("square", 2))
    )
    left, right = maximum(11 - bits, 0), maximum(bits - 11, 0)
    part = k.let("part", i32((level << _u32(left)) >> _u32(right)) & 0x3FF)
    sum_ = k.let("sum", ((two * part) >> 5) + one * 32)
    scaled = i32(_u32(sum_) * _u32(part) + (1 << 14)) >> 15
    return i32(cast(scaled + i32(load(gains, first)), INT16))


def filter_bank_log(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for filter_bank_log."""
    text = "y = held(ln(x << correction) * scale), 0 of 1 and 0, uint32 to int16"
    w = Writer(node, graph, text)
    k, x = w.k, w.x(0, "x")
    table = w.table("log", log_table(), "log2(1 + i / 128) - i / 128 in 1 / 65536")
    up, scale = w.number("correction_bits"), w.number("scale")
    within = LOG_ONE // LOG_SEGMENTS
    with k.loop("c", k.arg("size", w.outputs[0].size)) as c:
        shifted = k.let("shifted", load(x, c) << _u32(up))
        value = k.let("value", select(equal(shifted, 0), const(1, UINT32), shifted))
        octave = k.let("octave", BITS_OF(value) - 1)
        part = k.let("part", value - (const(1, UINT32) << _u32(octave)))
        left, right = maximum(16 - octave, 0), maximum(octave - 16, 0)
        part = k.let("part", i32((part << _u32(left)) >> _u32(right)))
        segment = k.let("segment", part >> 9)
        first = k.let("first", i32(load(table, segment)))
        rise = i32(load(table, segment + 1)) - first
        between = (rise * (part & (within - 1))) >> 16
        log2 = k.let("log2", (octave << 16) + part + first + between)
        natural = (_u64(log2) * LN_2 + LOG_ONE // 2) >> 16
        scaled = (_u32(natural) * _u32(scale) + LOG_ONE // 2) >> 16
        k.store(w.to[0], c, cast(minimum(i32(k.let("scaled", scaled)), _HIGH), INT16))
    return w.written(60 * w.outputs[0].size)


SIGNAL = {
    "auto_scale": auto_scale,
    "energy": energy,
    "filter_bank": filter_bank,
    "filter_bank_log": filter_bank_log,
    "pcan": pcan,
    "spectral_subtraction": spectral_subtraction,
    "square_root": square_root,
    "window": window,
}
