"""Rounding rules and the cheap ends of int16, as the kernels have them, equal what they
claim for every sum, factor and shift: by an SMT solver. A claim is a sentence of
distances, such as "no more than half a unit away, and up where it is half"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import z3

from pybuild.dtype import DType
from pybuild.ir.loop import Expr, Intrin, PointerType, Var
from pybuild.kernels.base.intrin import MULHI_ADD_ROUND
from pybuild.kernels.epilogues import by_parts, end16, int16, requantise
from pybuild.ops.conv import ConvParameters
from tests.proofs.solver import Meaning, bits, counterexample, resized

WIDE = 96  # bits of a whole product
LONG = 1 << 31
SHIFTS = range(1, 63)
SOME = (1, 2, 31, 32, 62)  # the edges of types


def near(y: Any, whole: Any, shift: int, ties: str) -> Any:
    """That y is whole / 2^shift to the nearest."""
    size = max(y.size() + shift, whole.size()) + 2  # in which nothing is lost
    y, whole = resized(y, size), resized(whole, size)
    unit = z3.BitVecVal(1 << shift, size)
    above = 2 * ((y << shift) - whole)  # in half units
    end = {
        "up": above == unit,
        "away": (above == unit) == (whole >= 0),
        "even": y & 1 == 0,
    }[ties]
    inside = z3.And(above > -unit, above < unit)
    tie = z3.And(z3.Or(above == unit, above == -unit), end)
    return inside if shift == 0 else z3.Or(inside, tie)


def within(term: Any, end: int) -> Any:
    return z3.And(term > -end, term < end)


at_shifts = pytest.mark.parametrize(
    "shifts",
    [
        pytest.param(SOME, id="some"),
        pytest.param(tuple(SHIFTS), id="all", marks=pytest.mark.sweep),
    ],
)


def _of(intrin: Intrin, **known: int) -> tuple[Meaning, dict[str, Any], Any]:
    """Its meaning, parameters, and result; some parameters are known."""
    names = {p.name: z3.BitVec(p.name, bits(p.type)) for p in intrin.params}
    for name, value in known.items():
        names[name] = z3.BitVecVal(value, names[name].size())
    meaning = Meaning(dict(names))
    result = meaning.of(intrin(*intrin.params))
    whole = [z3.simplify(resized(n, 64)) for n in names.values()]
    for (_, second), factor in zip(
        meaning.factors, [*names.values()][1:], strict=False
    ):
        same = {
            z3.simplify(resized(factor, 64)),
            z3.simplify(z3.ZeroExt(64 - factor.size(), factor)),
        }
        assert any(z3.eq(second, one) for one in same)  # each factor in turn
    if len(meaning.factors) == 1:
        assert z3.eq(meaning.factors[0][0], whole[0])
    return meaning, names, result


def _holds(meaning: Meaning, claim: Any, *given: Any) -> None:
    found = counterexample(z3.And(claim, *meaning.kept), *given)
    assert found is None, found


ONCE = [(requantise.SINGLE, "up"), (requantise.AWAY, "away"), (requantise.EVEN, "even"),
        (int16.WIDE, "up")]  # fmt: skip


@at_shifts
@pytest.mark.parametrize(("rule", "ties"), ONCE, ids=lambda v: getattr(v, "name", v))
def test_one_rounding(rule: Intrin, ties: str, shifts: tuple[int, ...]) -> None:
    """Of any product of 62 bits whose result is an int32."""
    for shift in shifts:
        meaning, _, result = _of(rule, shift=shift)
        (product,) = meaning.products
        most = min(1 << 62, (1 << 30) << shift)
        _holds(meaning, near(result, product, shift, ties), within(product, most))


def test_the_high_half_of_a_product() -> None:
    """gemmlowp's: a product of 31 bits by 31, ties up; and that of a shift of 32."""
    for rule, shift in ((requantise.MULHI_ROUND, 31), (int16.HIGH, 32)):
        meaning, _, result = _of(rule)
        (product,) = meaning.products
        given = within(product, 1 << 61)
        _holds(meaning, near(result, product, shift, "up"), given)
    meaning, names, result = _of(MULHI_ADD_ROUND)
    added = within(names["acc"], 1 << 30)
    claim = near(result - names["acc"], meaning.products[0], 32, "up")
    _holds(meaning, claim, within(meaning.products[0], 1 << 61), added)


@at_shifts
def test_shifts(shifts: tuple[int, ...]) -> None:
    """Of any int32; to even of such as leave room for half a unit."""
    for shift in (s for s in (0, *shifts) if s < 31):
        meaning, names, result = _of(requantise.SHIFT_ROUND, shift=shift)
        _holds(meaning, near(result, names["x"], shift, "away"))
        if shift == 0:
            continue
        meaning, names, result = _of(requantise.SHIFT_EVEN, shift=shift)
        room = within(names["x"], LONG - (1 << shift))
        _holds(meaning, near(result, names["x"], shift, "even"), room)


@at_shifts
def test_two_roundings(shifts: tuple[int, ...]) -> None:
    """LiteRT's rule is the two before, one after the other."""
    for shift in (s for s in (0, *shifts) if s < 31):
        meaning, _, result = _of(requantise.DOUBLE, shift=shift)
        (product,) = meaning.products
        high = z3.BitVec("high", 32)
        first = near(high, product, 31, "up")
        claim = near(result, high, shift, "away")
        _holds(meaning, claim, within(product, 1 << 61), first)


def _of_rule(value: object) -> str:
    return value.name if isinstance(value, Intrin) else str(value)


@pytest.mark.parametrize(
    ("rule", "ties"),
    [(by_parts.EXACT, "away"), (by_parts.EXACT_EVEN, "even")],
    ids=_of_rule,
)
@at_shifts
def test_a_factor_of_53_bits(rule: Intrin, ties: str, shifts: tuple[int, ...]) -> None:
    """round(sum * scale), of sums of 35 bits, by the exact product of 88."""
    for shift in shifts:
        meaning, names, result = _of(rule, shift=shift)
        upper, lower = (resized(p, WIDE) for p in meaning.products)
        size = (upper << by_parts.PART) + lower
        total = z3.If(names["sum"] < 0, -size, size)
        given = [within(names["sum"], 1 << 35), upper >= 0, upper < 1 << 62 - 1,
                 lower >= 0, lower < 1 << 61,
                 size < 1 << by_parts.PART + shift + 30]  # fmt: skip
        claim = near(result, total, by_parts.PART + shift, ties)
        _holds(meaning, claim, *given)


@at_shifts
def test_a_factor_of_two_words(shifts: tuple[int, ...]) -> None:
    """round(sum * scale), of sums of 31 bits, by the exact product of 94."""
    for shift in (s for s in shifts if 0 < s < 32):
        meaning, names, result = _of(by_parts.PRECISE, shift=shift)
        upper, lower = (resized(p, WIDE) for p in meaning.products)
        size = (upper << 32) + lower
        total = z3.If(names["sum"] < 0, -size, size)
        given = [within(names["sum"], (1 << 31) - 1), upper >= 0, upper < 1 << 62,
                 lower >= 0, lower < 1 << 63,
                 size < 1 << 64 + shift + 30]  # fmt: skip
        claim = near(result, total, 64 + shift, "away")
        _holds(meaning, claim, *given)


# ---- cheap ends of int16 ----------------------------------------------------


class _Let:
    """A kernel being written, whose names are what they stand for: but for the word of
    a row, which is unknown."""

    def let(self, name: str, value: Expr) -> Expr:
        return WORD if name in ("both", "word") else value


SUM, WORD = Var("acc", DType.INT32), Var("word", DType.INT32)


def _narrow(form: str) -> Expr:
    """A sum's value, by the code of a kernel, given its row's word."""
    rows = np.zeros((1, 1), np.int64)
    end = end16.End16(form, rows, -32768, 32767, False, "")
    bound = end16.Bound16(None, end)  # type: ignore[arg-type]
    table = Var("ends", PointerType(DType.INT32))
    row = bound.row(_Let(), table, 0)  # type: ignore[arg-type]
    known = [WORD] if form == "high" else row
    return bound.narrow(_Let(), SUM, known)  # type: ignore[arg-type]


def _word(form: str, factor: Any, shift: int) -> Any:
    """What `end16` puts into a row: a factor of 15 bits, and the shift."""
    if form == "high":
        return factor << (32 - shift)
    return factor << (16 if form == "shifted" else 8) | shift - 16


def _relation(form: str, products: list[Any], product: Any, shift: int) -> list[Any]:
    """What the products that a form computes have to do with that of sum and factor:
    one is moved to the left; or both halves of the sum have one each."""
    first, *more = (resized(p, WIDE) for p in products)
    if form == "parts":
        (lower,) = more
        ends = first >= -(1 << 30), first < 1 << 30, lower >= 0, lower < 1 << 31
        return [*ends, product == (first << 16) + lower]
    assert not more
    return [first == product << (32 - shift if form == "high" else 16)]


def _whose(form: str, meaning: Meaning, shift: int) -> list[Any]:
    """That these are the products of which `_relation` speaks."""
    acc, factor = (z3.SignExt(32, z3.BitVec(name, 32)) for name in ("acc", "factor"))
    pairs = [(resized(a, 64), resized(b, 64)) for a, b in meaning.factors]
    if form == "parts":
        (upper, one), (lower, two) = pairs
        return [(upper << 16) + lower == acc, lower >= 0, lower < 1 << 16,
                one == factor, two == factor]  # fmt: skip
    ((whole, one),) = pairs
    left = 32 - shift if form == "high" else 16
    return [whole == acc, one == factor << left]


@at_shifts
@pytest.mark.parametrize("form", end16._SHORT)
def test_cheap_ends_of_int16(form: str, shifts: tuple[int, ...]) -> None:
    """Of any sum of 32 bits, and any factor of 15."""
    most = 32 if form == "high" else 47
    for shift in (s for s in (17, *shifts) if 17 <= s <= most):
        factor, acc = z3.BitVec("factor", 32), z3.BitVec("acc", 32)
        product, wanted = z3.BitVec("product", WIDE), z3.BitVec("wanted", 64)
        meaning = Meaning({"acc": acc, "word": _word(form, factor, shift)})
        result = meaning.of(_narrow(form))
        held = z3.If(wanted > 32767, 32767, z3.If(wanted < -32768, -32768, wanted))
        given = [factor >= 0, factor < 1 << 15, within(product, 1 << 46),
                 near(wanted, product, shift, "up"),
                 *_relation(form, meaning.products, product, shift)]  # fmt: skip
        claim = z3.And(resized(result, 64) == held, *_whose(form, meaning, shift))
        _holds(meaning, claim, *given)


@pytest.mark.parametrize(("form", "mulhi"), [("high", True), ("shifted", True),
                                             ("parts", False)])  # fmt: skip
def test_rows_are_what_was_proven(form: str, mulhi: bool) -> None:
    """The words that the compiler puts into rows, of channels of one shift or two."""
    most = 32 if form == "high" else 47
    for shift in range(17, most + 1):
        second = shift if form == "high" else 40
        pairs = [(16385, shift), (32767, second)]
        multipliers, shifts = zip(*((m, 15 - s) for m, s in pairs), strict=True)
        scales = [m * 2.0**-s for m, s in pairs]
        made = ConvParameters(
            "wide", multipliers, shifts, (*scales,), 0, 0, -32768, 32767
        )
        reach = np.asarray([1 << 20, 1 << 20])
        found = end16.end16(int16.finish16(made, reach, ""), 2, False, mulhi)
        words = [_word(form, m, s) for m, s in pairs]
        assert found.form == form and found.rows[:, 0].tolist() == words
    # those of float64 itself: frontends/test_wide_sums, kernels/test_int16
    others = {"wide", "double", *by_parts.BY_PARTS}
    assert set(end16._CHEAP) | others == set(end16._GIVEN)
