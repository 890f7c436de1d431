"""The sums of depthwise_code.py's kernels: a row of a few channels.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.ir.loop import Expr, Intrin, Var, cast, const, i32, load, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import (
    DOT2,
    IN_ORDER,
    MLA_HIGH,
    MLA_HIGH_LOW,
    MLA_LOW,
    MLA_LOW_HIGH,
)
from pybuild.kernels.epilogues.affine_end import AffineFinish, is_signed
from pybuild.kernels.epilogues.by_channel import exact_of
from pybuild.kernels.epilogues.exact import Exact
from pybuild.kernels.layers.depthwise import GROUP, UNROLLED, Layer

# (half of the word of input, half of the word of weights) -> product
_HALVES: Mapping[tuple[int, int], Intrin] = {
    (0, 0): MLA_LOW,
    (0, 1): MLA_LOW_HIGH,
    (1, 0): MLA_HIGH_LOW,
    (1, 1): MLA_HIGH,
}


class Sums:
    """The part of a kernel that sums a row of four channels that are widened."""

    def __init__(
        self,
        k: Builder,
        layer: Layer,
        shared: Mapping[str, Expr],
        finish: AffineFinish,
        known: Mapping[str, Var],
    ) -> None:
        self.k, self.layer, self.w = k, layer, layer.window
        self.shared, self.known = shared, known
        self.finish = finish.inside(known)
        self.channels, self.out_width = shared["channels"], shared["out_width"]
        self.rest = shared["rest"]

    def write(self, name: str) -> None:
        """name  of this part"""
        k, layer, known = self.k, self.layer, self.known
        taps, end = (
            k.let("taps", known["weights"]),
            k.let("next_epilogue", known["epilogue"]),
        )
        plane, out = k.let("plane", known["lines"]), k.let("out", known["y"])
        with k.loop("channel", GROUP, rolled=True):
            with k.loop("copy", self.shared["multiplier"], rolled=True):
                self._channel(name, plane, (taps, end, out))
                k.assign(taps, offset(taps, layer.words))
                if layer.end_size:
                    k.assign(end, offset(end, layer.end_size))
                k.assign(out, offset(out, 1))
            k.assign(plane, offset(plane, self.shared["plane_size"]))

    def _channel(self, name: str, plane: Var, where: tuple[Var, Var, Var]) -> None:
        """One channel of a row; one that ends by the rule itself, beside others, in a
        part of its own, so that what is cheap keeps all registers."""
        k, layer, exact = self.k, self.layer, exact_of(self.layer.epilogue)
        if exact is None:
            self._rows(plane, where)
            return
        weights, ends, out = where
        factor = k.let("factor", load(ends, layer.end_size - 1))
        with self.finish.by_itself(k, factor) as row:
            given: dict[str, Expr] = {}
            given |= {n: v for n, v in self.shared.items() if isinstance(v, Var)}
            given |= self.finish.values
            given |= {"lines": plane, "weights": weights, "epilogue": row, "y": out}
            doc = "A row of a channel that ends by the rule itself."
            with k.part(f"{name}_rule", doc, **given) as params:
                known = {p.name: p for p in params}
                shared, alone = {**self.shared, **known}, replace(layer, epilogue=exact)
                inner = Sums(k, alone, shared, self.finish, known)
                inside = known["weights"], known["epilogue"], known["y"]
                inner._rows(known["lines"], inside)
        with k.otherwise():
            self._rows(plane, where)

    def _rows(self, plane: Var, where: tuple[Var, Var, Var]) -> None:
        """Computes one channel of a row, or of all rows."""
        k, (weights, ends, out) = self.k, where
        if not self.layer.whole:
            self._row(plane, where)
            return
        line, to = k.let("first_line", plane), k.let("row_out", out)
        with k.loop("oy", self.shared["out_height"], rolled=True):
            self._row(line, (weights, ends, to))
            k.assign(line, offset(line, self.shared["down"]))
            k.assign(to, offset(to, self.out_width * self.channels))

    def _row(self, plane: Var, where: tuple[Var, Var, Var]) -> None:
        """Computes one channel of a row."""
        k, layer, n = self.k, self.layer, self.layer.columns
        weights, ends, out = where
        if layer.once:
            self._sum(n, plane, weights, ends, out)
            return
        x, y, whole = k.let("x", plane), k.let("to", out), self.out_width
        if layer.rest or layer.may_rest:
            whole = k.let("whole", self.out_width - self.rest)
        with k.loop("ox", whole, 0, n, rolled=True):
            self._sum(n, x, weights, ends, y)
            words = n * self.w.stride_w // 2
            k.assign(x, offset(x, words * layer.step))
            k.assign(y, offset(y, self.channels * n))
        if layer.may_rest:
            with k.when(const(0) < self.rest):
                self._sum(2, x, weights, ends, y)
        elif layer.rest:
            self._sum(layer.rest, x, weights, ends, y)

    def _sum(self, n: int, x: Var, weights: Var, ends: Var, y: Var) -> None:
        """`n` pixels, the first at an even column."""
        k, rows, per_row = self.k, self.w.kernel_h, self.layer.line
        begins = self.layer.starts_sums
        first = k.let("first", load(ends) if begins else const(0))
        # gcc would keep the weights, on the stack, for all pixels
        starts = [IN_ORDER(first), *[first] * (n - 1)]
        sums = [k.let(f"sum{i}", start) for i, start in enumerate(starts)]
        down = self.shared["pitch"] if self.layer.whole else const(1)
        if self.layer.taps <= UNROLLED:
            for row in range(rows):
                line = k.let("line", offset(x, down * row)) if row else x
                self._products(sums, line, weights, row * per_row)
        else:
            taps, line = k.let("row_taps", weights), k.let("line", x)
            with k.loop("row", rows, rolled=True):
                self._products(sums, line, taps, 0)
                k.assign(taps, offset(taps, per_row))
                k.assign(line, offset(line, down))
        self._finish(sums, ends, y)

    def _products(self, sums: Sequence[Var], x: Var, weights: Var, first: int) -> None:
        """Adds one row of taps, word by word; each weight and value is loaded once."""
        k, step = self.k, self.layer.step
        taps, words, values = dict[int, Var](), dict[int, Var](), dict[int, Var]()
        found = _uses(self.layer, len(sums))
        for column, uses in found.items():
            if column not in values:
                # one instruction loads two that are neighbours
                both = [c for c in (column, column + 1) if c in found]
                for c in both if step == 1 else both[:1]:
                    values[c] = k.let(f"value{c}", load(x, c * step))
            for i, word, halves in uses:
                if word not in taps:
                    self._taps(weights, first, word, taps, words)
                product = DOT2 if halves is None else _HALVES[halves]
                k.assign(sums[i], product(values[column], taps[word], sums[i]))

    def _taps(
        self, weights: Var, first: int, word: int, taps: dict[int, Var],
        words: dict[int, Var],
    ) -> None:  # fmt: skip
        """A word of taps; of an image its neighbour, too."""
        pairs = self.layer.image is not None or self.layer.nine
        near = {word, word ^ 1} if pairs else {word}
        for w in sorted(near):
            if w < self.layer.row_words:
                tap = self._tap(weights, first, w, words)
                taps[w] = self.k.let(f"tap{w}", tap)

    def _tap(self, weights: Var, first: int, pair: int, words: dict[int, Var]) -> Expr:
        """Loads two neighbours of a row of weights, times 256."""
        if self.layer.image is not None or self.layer.nine:
            return load(weights, first + pair)
        at, second = divmod(pair, 2)
        if at not in words:
            word = cast(load(weights, first + at), DType.UINT32)
            words[at] = self.k.let(f"taps{at}", word)
        word = words[at] << 8 if second else words[at]
        return i32(word & const(0xFF00FF00, DType.UINT32))

    def _finish(self, sums: Sequence[Var], ends: Expr, y: Expr) -> None:
        k, epilogue = self.k, self.layer.epilogue
        if isinstance(epilogue, Exact):
            bits = self.layer.fraction
            to = [(acc >> bits, y, self.channels * i) for i, acc in enumerate(sums)]
            self.finish.by_rule(to, ends)
            return
        words = [k.let("end", load(ends, i)) for i in range(1, self.layer.end_size)]
        row = self.finish.row(k, words) if is_signed(epilogue) else None
        for i, acc in enumerate(sums):
            if row is not None:
                value = self.finish.by_sign(k, acc, self.layer.fraction, row)
            elif self.layer.starts_sums:
                value = self.finish.narrow(acc, words[-1])
            else:
                value = self.finish.narrow(acc * 256 + load(ends), words[-1])
            k.store(y, self.channels * i, value)


_Use = tuple[int, int, tuple[int, int] | None]


def _uses(layer: Layer, pixels: int) -> dict[int, list[_Use]]:
    """Word of the row -> (pixel, word of weights, halves or None: both)."""
    w, found = layer.window, dict[int, list[_Use]]()
    for i in range(pixels):
        kx = 0
        while kx < w.kernel_w:
            at, half = divmod(i * w.stride_w + kx * w.dilation_w, 2)
            pair = half == 0 and kx + 1 < w.kernel_w and w.dilation_w == 1
            word = min(kx, max(w.kernel_w - 2, 0))
            halves = None if pair else (half, kx - word)
            found.setdefault(at, []).append((i, word, halves))
            kx += 2 if pair else 1
    return dict(sorted(found.items()))
