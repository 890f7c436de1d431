"""lstm of int8 with vectors (Cortex-M55): sums of sixteen products, and the cells of
eight units side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    Expr,
    Var,
    const,
    load,
    offset,
)
from pybuild.kernels.base.vector_eights import (
    ALL8,
    AWAY_ALL4,
    BETWEEN4,
    HELD8,
    PRODUCTS_EVEN8,
    PRODUCTS_ODD8,
)
from pybuild.kernels.base.vector_packs import (
    BYTE8,
    HOLD8,
    MORE8,
    PACK8,
    RIGHT4,
)
from pybuild.kernels.base.vector_rounds import HOLD4
from pybuild.kernels.base.vectors import (
    ADD4,
    DOT16,
    FIRST16,
    PLUS4,
    bytes_at,
    halves_at,
    words_at,
)
from pybuild.kernels.portable.act16 import curve_points
from pybuild.kernels.recurrent.curves_mve import LOGISTIC8, tanh8
from pybuild.kernels.recurrent.lstm import Lstm
from pybuild.kernels.recurrent.scale4 import scale4
from pybuild.ops.recurrent import CELL_GATE, GATES, SIGMOID, R, W, sizes

_LANES = 16  # products of one instruction
_EIGHT = 8  # units side by side
_Scaled = Callable[[Expr], Expr]
# units of eight, as two fours of words are packed in turns
_UNITS = (0, 2, 4, 6, 1, 3, 5, 7)


class MveLstm(Lstm):
    """The pieces of the kernel that differ from those of any core."""

    ending, per_mac = "_mve", 0.2
    order = "the weights of a gate lie in sixteens"

    def weights(self, first: int, role: str) -> Var:
        """[eights][units][turns][gates][16]"""
        four = np.stack(self.four(first), 1)
        inputs = four.shape[2]
        turns = -(-inputs // _LANES)
        made = np.zeros((*self._eights(four).shape[:3], turns * _LANES), np.int8)
        made[..., :inputs] = self._eights(four)
        made = made.reshape(-1, GATES, turns, _LANES).transpose(0, 2, 1, 3)
        order = "units, sixteen inputs a turn, the four gates side by side"
        return self.rows.table(role, np.ascontiguousarray(made), order)

    def _eights(self, four: Array) -> Array:
        """[eights][units][gates]...: of [units][gates]..., zeros behind them."""
        left = -len(four) % _EIGHT
        padded = np.pad(four, [(0, left), *[(0, 0)] * (four.ndim - 1)])
        return padded.reshape(-1, _EIGHT, *four.shape[1:])[:, _UNITS]

    def bias_table(self, role: str, made: Array) -> Var:
        """[eights][gates][units]"""
        eights = np.ascontiguousarray(self._eights(made).transpose(0, 2, 1))
        return self.rows.table(role, eights, "eight units, gate by gate")

    def begin(self) -> None:
        k, made = self.k, self.made
        assert made is not None
        _, _, width, units = sizes(self.node, self.graph)
        self.seen = k.array("seen", INT32, GATES * _EIGHT)
        self.known = k.array("known", INT32, GATES * _EIGHT)
        self.turns = {}
        for first, name, inputs in ((W, "seen", width), (R, "known", units)):
            whole = k.arg(f"{name}_turns", inputs // _LANES)
            self.turns[first] = whole, k.arg(f"{name}_rest", inputs % _LANES)
        self.given: dict[str, Expr] = {}
        if made.tables:
            self.given["points"] = self.rows.table("points", curve_points().array)
            self.kept = scale4(k, "kept", made.kept)
            self.added = scale4(k, "added", made.added)
        else:
            self.right = k.arg("right", made.bits + 15)
        self.through = k.array("gates", INT16, GATES * _EIGHT)
        self.scales = {
            first: [scale4(k, f"{name}_{g}", pair) for g, pair in enumerate(pairs)]
            for name, first, pairs in (("seen", W, made.seen), ("known", R, made.known))
        }
        self.hidden = scale4(k, "hidden", made.hidden)
        self.zero = k.arg("zero", made.zero)
        self.clip = k.arg("clip", made.clip) if made.clip > 0 else None
        self.left = units % _EIGHT
        if self.left:
            self.few_cells = k.array("few_cells", INT16, _EIGHT)
            self.few = k.array("few", INT8, _EIGHT)
            with k.loop("i", _EIGHT) as i:
                k.store(self.few_cells, i, const(0, INT16))

    def every(self, many: Expr, now: Expr, before: Expr, cell: Expr, to: Expr) -> None:
        k = self.k
        places = {f: k.let("weights", self.gates[f].weights) for f in (W, R)}
        biases = {}
        for f in (W, R):
            bias = self.gates[f].bias
            assert bias is not None
            biases[f] = k.let("bias", bias)
        with k.loop("j", many, 0, _EIGHT) as j:
            for first, source, sums in ((W, now, self.seen), (R, before, self.known)):
                self._dots(first, source, places[first], sums)
            self._side_by_side(j, many, biases, cell, to)

    def _side_by_side(
        self, j: Expr, many: Expr, biases: dict[int, Var], cell: Expr, to: Expr
    ) -> None:
        """The cells of eight units that have sums; of fewer behind them by a copy."""
        k = self.k
        cells, y = k.let("cells", offset(cell, j)), k.let("y", offset(to, j))
        if not self.left:
            self._cells(biases, cells, y)
            return
        count = k.let("count", many - j)
        with k.when(count < _EIGHT):
            with k.loop("i", count) as i:
                k.store(self.few_cells, i, load(cells, i))
            k.assign(cells, self.few_cells)
            k.assign(y, self.few)
        self._cells(biases, cells, y)
        with k.when(count < _EIGHT), k.loop("i", count) as i:
            k.store(offset(cell, j), i, load(self.few_cells, i))
            k.store(offset(to, j), i, load(self.few, i))

    def _next(self, biases: dict[int, Var]) -> None:
        """The next eight units' first numbers."""
        for bias in biases.values():
            self.k.assign(bias, offset(bias, GATES * _EIGHT))

    def _dots(self, first: int, source: Expr, weights: Var, sums: Var) -> None:
        """Of eight units, four gates each."""
        k = self.k
        whole, rest = self.turns[first]
        _, _, width, units = sizes(self.node, self.graph)
        inputs = width if first == W else units
        turns = -(-inputs // _LANES)
        with k.part(
            f"lstm_dots{'_rest' if inputs % _LANES else ''}",
            "the sums of four gates of eight units",
            x=source, weights=weights, sums=sums, turns=whole, rest=rest,
        ) as params:  # fmt: skip
            inner = {p.name: p for p in params}
            w = k.let("w", inner["weights"])
            tail = None
            if inputs % _LANES:
                end = offset(inner["x"], inner["turns"] * _LANES)
                tail = k.let("tail", FIRST16(end, inner["rest"]))
            with k.loop("unit", _EIGHT) as unit:
                four = [k.let(f"sum{g}", 0) for g in range(GATES)]
                with k.loop("turn", inner["turns"], rolled=True) as turn:
                    x = k.let("values", bytes_at(inner["x"], turn * _LANES))
                    self._turn(four, x, w)
                if tail is not None:
                    self._turn(four, tail, w)
                for g, total in enumerate(four):
                    k.store(inner["sums"], unit + _EIGHT * g, total)
        k.assign(weights, offset(weights, turns * (GATES * _LANES * _EIGHT)))

    def _turn(self, four: Sequence[Var], x: Var, w: Var) -> None:
        for g, total in enumerate(four):
            self.k.assign(total, DOT16(total, x, bytes_at(w, _LANES * g)))
        self.k.assign(w, offset(w, _LANES * GATES))

    def _cells(self, biases: dict[int, Var], cells: Expr, y: Expr) -> None:
        """The next states of eight units, and what goes out."""
        k, made = self.k, self.made
        assert made is not None
        for g in range(GATES):
            self._gate(g, biases)
        self._next(biases)
        given = {**self.given, "zero": self.zero}
        if made.tables:
            given |= self.kept.given("kept") | self.added.given("added")
        else:
            given["right"] = self.right
        if self.clip is not None:
            given["clip"] = self.clip
        with k.part(
            f"lstm_state{'_table' * made.tables}_{self.hidden.form}_{made.bits}"
            f"{'_clip' * (made.clip > 0)}",
            "the next cell states of eight units, and what goes out",
            gates=self.through, cells=cells, y=y,
            **given, **self.hidden.given("hidden"),
        ) as params:  # fmt: skip
            inner = {p.name: p for p in params}
            into, forget, change, out = (
                k.let("gate", halves_at(inner["gates"], _EIGHT * g))
                for g in range(GATES)
            )
            old = k.let("before", halves_at(inner["cells"]))
            keep, add = self._sides(inner)
            kept, added = (
                self._product(forget, old, keep),
                self._product(into, change, add),
            )
            state = k.let("state", HELD8(kept, added))
            if "clip" in inner:
                k.assign(state, HOLD8(state, const(0) - inner["clip"], inner["clip"]))
            k.store(inner["cells"], 0, state)
            active = self._curve(inner, made.bits)(state)
            scale = self.hidden.inside(inner, "hidden").of
            value = MORE8(self._product(out, active, scale), inner["zero"])
            k.store(inner["y"], 0, BYTE8(value))

    def _sides(self, inner: dict[str, Var]) -> tuple[_Scaled, _Scaled]:
        """How what is kept of a state is scaled, and what is added."""
        if self.made is not None and self.made.tables:
            kept, added = (
                self.kept.inside(inner, "kept"),
                self.added.inside(inner, "added"),
            )
            return kept.of, added.of
        right = inner["right"]
        return lambda v: AWAY_ALL4(v, 15), lambda v: AWAY_ALL4(v, right)

    def _curve(self, inner: dict[str, Var], bits: int) -> Callable[[Var], Var]:
        """tanh of numbers with so many bits before the point; -1: logistic."""
        k, made = self.k, self.made
        assert made is not None
        if not made.tables:
            by_steps = LOGISTIC8 if bits < 0 else tanh8(bits)
            return lambda x: k.let("curve", by_steps(x))
        before = SIGMOID if bits < 0 else made.tanh(bits)

        def curve(x: Var) -> Var:
            fours = []
            for products in (PRODUCTS_EVEN8, PRODUCTS_ODD8):
                d: Expr = products(x, ALL8(before.multiplier))
                if before.shift:
                    d = RIGHT4(ADD4(d, 1 << (before.shift - 1)), before.shift)
                fours.append(BETWEEN4(inner["points"], d, before.bits, before.top))
            return k.let("curve", PACK8(*fours))

        return curve

    def _gate(self, g: int, biases: dict[int, Var]) -> None:
        """Of eight units, from their sums."""
        k, at, made = self.k, _EIGHT * g, self.made
        assert made is not None
        scales = [self.scales[first][g] for first in (W, R)]
        forms = "_".join(scale.form for scale in scales)
        kind = "cell" if g == CELL_GATE else "gate"
        with k.part(
            f"lstm_{kind}{'_table' * made.tables}_{forms}",
            "one gate of eight units, from their sums",
            seen=offset(self.seen, at), known=offset(self.known, at),
            bias=offset(biases[W], at), known_bias=offset(biases[R], at),
            gate=offset(self.through, at), **self.given,
            **scales[0].given("seen"), **scales[1].given("known"),
        ) as params:  # fmt: skip
            inner = {p.name: p for p in params}
            fours: list[list[Expr]] = []
            for scale, name, bias in zip(
                scales, ("seen", "known"), ("bias", "known_bias"), strict=True
            ):
                inside = scale.inside(inner, name)
                totals = (
                    PLUS4(words_at(inner[name], half), words_at(inner[bias], half))
                    for half in (0, 4)
                )
                fours.append([inside.of(total) for total in totals])
            if made.tables:
                both = HELD8(PACK8(*fours[0]), PACK8(*fours[1]))
            else:
                both = PACK8(*(PLUS4(_held(a), b) for a, b in zip(*fours, strict=True)))
            curve = self._curve(inner, 3 if g == CELL_GATE else -1)
            k.store(inner["gate"], 0, curve(k.let("at", both)))

    def _product(self, a: Var, b: Var, scale: _Scaled) -> Var:
        """Scaled, held within int16."""
        fours = (scale(products(a, b)) for products in (PRODUCTS_EVEN8, PRODUCTS_ODD8))
        return self.k.let("product", PACK8(*fours))


def _held(v: Expr) -> Expr:
    """Four words within int16."""
    return HOLD4(v, -(1 << 15), (1 << 15) - 1, 0)


def fits(node: Node, graph: Graph) -> bool:
    """Whether there are eight units, whose cells are one vector."""
    return sizes(node, graph)[3] >= _EIGHT
