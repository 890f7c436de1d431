"""The epilogue of a layer by one high multiplication, inside a kernel being written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.loop import (
    INT8,
    Const,
    Expr,
    Var,
    cast,
    const,
    i32,
    load,
    maximum,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import (
    HELD_SUB_BYTES,
    MULHI,
    MULHI_ADD,
    MULHI_ADD_ROUND,
    SATURATE8,
)
from pybuild.kernels.epilogues.affine import SHIFTS, Affine, ends_key
from pybuild.kernels.epilogues.affine_add import AffineAdd
from pybuild.kernels.epilogues.exact import Exact
from pybuild.kernels.epilogues.exact_end import Sum, end_of
from pybuild.kernels.epilogues.requantise import SHIFT_EVEN
from pybuild.kernels.epilogues.rounded import Rounded
from pybuild.kernels.epilogues.staircase import FRACTION


class AffineFinish:
    """The bound values of an Affine, or of the rule itself.

    usual  base and shift have the values of most layers and are constants; otherwise
           they are arguments: all other layers share a kernel
    together  base and shift share one argument: the base is a number of half steps
    rows   the table of the channels that use the rule itself
    """

    def __init__(
        self, k: Builder, epilogue: Affine | Exact, usual: bool, together: bool = False,
        rows: Expr | None = None,
    ) -> None:  # fmt: skip
        self.epilogue = epilogue
        self.bound: dict[str, Expr] = {}
        found = epilogue if isinstance(epilogue, Exact) else epilogue.exact
        if not isinstance(epilogue, Exact):
            self._bind(k, epilogue, usual, together)
        self.rule = end_of(k, found) if found is not None else None
        if rows is not None:
            self.bound["rows"] = rows

    def _bind(self, k: Builder, epilogue: Affine, usual: bool, together: bool) -> None:
        base: Expr = const(epilogue.base)
        shift: Expr = const(epilogue.shift)
        if isinstance(epilogue, Rounded):
            base, shift = k.arg("half_steps", epilogue.base), const(1)
        elif together:
            steps = epilogue.base >> epilogue.shift - 1
            both = k.arg("steps_shift", steps << 16 | epilogue.shift)
            shift = both & 0xFFFF
            base = (both >> 16) << (shift - 1)
        elif not usual:
            base = k.arg("base", epilogue.base)
            shift = k.arg("shift", epilogue.shift)
        self.bound = {"base": base, "shift": shift}
        if epilogue.joint is not None:
            self.bound["factor"] = k.arg("factor", epilogue.joint)
        self.bound |= {"low": const(epilogue.low), "high": const(epilogue.high)}
        if epilogue.raised is not None:
            floor = epilogue.low + epilogue.raised + 128
            self.bound |= {"floor": k.arg("floor", floor)}
            self.bound |= {"back": k.arg("back", epilogue.low + 128)}
        elif epilogue.clamped:
            self.bound["low"] = k.arg("low", epilogue.low)
            self.bound["high"] = k.arg("high", epilogue.high)

    @property
    def values(self) -> dict[str, Expr]:
        """The values to pass to a part of the kernel."""
        known = self.bound | (self.rule.values if self.rule is not None else {})
        return {n: v for n, v in known.items() if not isinstance(v, Const)}

    def inside(self, params: Mapping[str, Var]) -> AffineFinish:
        """Return the same inside a part that was given `values`."""
        inner = AffineFinish.__new__(AffineFinish)
        inner.epilogue = self.epilogue
        inner.bound = {n: params.get(n, v) for n, v in self.bound.items()}
        inner.rule = self.rule.inside(params) if self.rule is not None else None
        return inner

    def factor(self, k: Builder, ends: Expr, at: int) -> Expr:
        """Return a channel's factor, at `at` of the table, or that of the whole
        layer."""
        if "factor" in self.bound:
            return self.bound["factor"]
        return k.let("factor", load(ends, at))

    @contextmanager
    def cheap(self, k: Builder, factor: Expr, sums: Sequence[Sum]) -> Iterator[None]:
        """Write the code of a channel's cheap epilogue; if some channels use the rule
        itself, also the branch for these."""
        if isinstance(self.epilogue, Affine) and self.epilogue.exact is None:
            yield
            return
        with self.by_itself(k, factor) as row:
            self.by_rule(sums, row)
        with k.otherwise():
            yield

    @contextmanager
    def by_itself(self, k: Builder, factor: Expr) -> Iterator[Expr]:
        """Open the branch for a channel that uses the rule itself; yield the rule's
        row."""
        with k.when(factor < 0, rare=True):
            yield offset(self.bound["rows"], const(-1) - factor)

    def by_rule(self, sums: Sequence[Sum], row: Expr) -> None:
        """Finish exact sums, without bias, by the rule; `row`: the channel's."""
        assert self.rule is not None
        for acc, y, at in sums:
            self.rule.store(y, at, acc, row)

    def narrow(self, scaled: Expr, factor: Expr) -> Expr:
        """Return the int8 value of 256 * acc + offset."""
        base = self.bound["base"]
        if isinstance(base, Const):
            value = MULHI(scaled, factor) + base
        else:
            value = MULHI_ADD(scaled, factor, base)
        return self._held(value >> self.bound["shift"])

    def _held(self, value: Expr) -> Expr:
        assert isinstance(self.epilogue, Affine)
        if self.epilogue.raised is not None:
            # what is below the floor ends at int8's low end
            held = HELD_SUB_BYTES(SATURATE8(value), self.bound["floor"])
            return cast(held + self.bound["back"], INT8)
        if not self.epilogue.clamped:
            return cast(SATURATE8(value), INT8)
        return cast(
            minimum(maximum(value, self.bound["low"]), self.bound["high"]), INT8
        )

    def row(self, k: Builder, words: Sequence[Expr]) -> tuple[Expr, Expr, Expr]:
        """Return the arguments of `by_sign` for a channel, from the words after the
        start value in its table row."""
        if not isinstance(self.epilogue, Rounded):
            plus, more, factor = words
            return plus, more, factor
        more, factor = words
        steps = cast(self.bound["base"], DType.UINT32)
        plus = k.let("plus", i32(steps << cast(more, DType.UINT32)))
        return plus, more, factor

    def by_sign(
        self, k: Builder, total: Expr, bits: int, row: tuple[Expr, Expr, Expr]
    ) -> Expr:
        """Return the int8 value of a sum that includes its bias, times 2^bits."""
        plus, more, factor = row
        if not isinstance(self.epilogue, Rounded):
            if bits < FRACTION or not isinstance(total, Var):
                more_bits = 1 << FRACTION - bits
                total = k.let("scaled", total * more_bits if more_bits > 1 else total)
            return self.narrow(corrected(total, plus, more), factor)
        twice = total
        if bits != 1:
            twice = k.let("twice", total >> bits - 1 if bits else total * 2)
        if not self.epilogue.twice:
            return self._held(MULHI_ADD(twice, factor, plus) >> more >> 1)
        rounded = MULHI_ADD_ROUND(twice, factor, plus)
        return self._held((rounded + (twice >> 31)) >> more >> 1)


def rounded_sum(k: Builder, cheap: AffineAdd, lift: int = 0) -> Callable[[Expr], Expr]:
    """Return a function from a sum of both products to its value before the clamp, less
    `lift`. If the shift alone rounds, the offset already includes `lift`."""
    if cheap.base is None:
        return lambda total: total >> cheap.shift
    base = k.arg("base", cheap.base - lift)
    return lambda total: SHIFT_EVEN(total, cheap.shift) + base


def is_usual(epilogue: Affine | Exact) -> bool:
    """Return True if base and shift, if any, are those of most layers."""
    if isinstance(epilogue, Exact):
        return True
    return (epilogue.base, epilogue.shift) == (0, SHIFTS[0])


def is_signed(epilogue: Affine | Exact) -> bool:
    """Return True if sums start with the bias alone, because the offset depends on
    their sign."""
    return isinstance(epilogue, Affine) and epilogue.below is not None


def row_words(epilogue: Affine | Exact) -> int:
    """Return the words of the table for one channel."""
    if isinstance(epilogue, Exact):
        return epilogue.size
    if isinstance(epilogue, Rounded):
        return 3
    if epilogue.joint is not None:
        return 1
    return 2 if epilogue.below is None else 4


def columns_of(epilogue: Affine | Exact, bias: Array, bits: int) -> tuple[Ints, str]:
    """Return the table for sums that are shifted left by `bits`, and its
    description."""
    if isinstance(epilogue, Exact):
        return epilogue.columns(bias), epilogue.row
    words = epilogue.row.replace(f"{1 << FRACTION} * ", f"{1 << bits} * ")
    return epilogue.columns(bias, bits), words


def fraction(epilogue: Affine | Exact) -> int:
    """Return the number of bits by which sums are best shifted left before the
    epilogue, if their weights may be shifted by any number."""
    return 1 if isinstance(epilogue, Rounded) else FRACTION


def kind(epilogue: Affine | Exact, usual: bool) -> str:
    """The key that distinguishes the code of two layers."""
    if isinstance(epilogue, Exact):
        return epilogue.key
    if isinstance(epilogue, Rounded):
        return epilogue.key
    parts = (
        "signed" if epilogue.below is not None else "",
        "joint" if epilogue.joint is not None else "",
        ends_key(epilogue),
        "" if usual else "scaled",
        f"some_{epilogue.exact.key}" if epilogue.exact is not None else "",
    )
    return "_".join(p for p in parts if p)


def corrected(scaled: Expr, plus: Expr, minus: Expr) -> Expr:
    """Return 256 * acc plus the offset for its sign; `scaled` is used twice."""
    return scaled + (plus + ((scaled >> 31) & minus))
