"""Each form of an end of int8 that the compiler can choose, at every sum that a layer
can reach, by a second implementation: none is left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from pybuild.dtype import Ints
from pybuild.kernels.epilogues import affine, affine_add, affine_line, affine_split
from pybuild.kernels.epilogues.affine import Affine, affine_or_exact, of_products
from pybuild.kernels.epilogues.affine_add import AffineAdd
from pybuild.kernels.epilogues.affine_line import Line
from pybuild.kernels.epilogues.affine_split import Split, split_or_exact
from pybuild.kernels.epilogues.exact import Exact, exact
from pybuild.kernels.epilogues.requantise import RULES
from pybuild.kernels.mve.pool import scaled_mean
from pybuild.ops.conv import ConvParameters
from pybuild.ops.eltwise import AddParameters, MulParameters
from pybuild.ops.reduce import MeanParameters
from tests.evidence.test_requantisation import INT32, cheap, rule

ROUNDINGS = (*RULES,)
Q31 = 1 << 31
Layer = tuple[ConvParameters, Ints, Ints]


# ---- a second implementation ------------------------------------------------


def half_even(above: Ints, below: Ints) -> Ints:
    """above / below, both whole, to the nearest, ties to even."""
    whole, rest = np.divmod(above, below)
    return whole + ((2 * rest > below) | ((2 * rest == below) & (whole % 2 == 1)))


def in_float32(acc: Ints, scale: float) -> Ints:
    """round(float32(acc) * scale), ties to even, in whole numbers: the product of two
    mantissas has 24 bits again, and the rest decides.

    Source  IEEE 754, binary32; ONNX Runtime QLinearConv
    """
    fraction, power = np.frexp(np.float64(np.float32(scale)))
    whole = np.abs(acc) * int(fraction * (1 << 24))
    bits = np.frexp(whole.astype(np.float64))[1].astype(np.int64)
    extra = np.maximum(bits - 24, 0)
    kept = half_even(whole, 1 << extra)
    places = extra + int(power) - 24  # that the product is moved to the left
    up, down = np.maximum(places, 0), np.minimum(np.maximum(-places, 0), 62)
    return np.sign(acc) * half_even(kept << up, 1 << down)


def wanted(acc: Ints, made: ConvParameters, channel: int) -> Ints:
    """What the rule gives."""
    if made.rounding == "even" and made.scales:
        value = in_float32(acc, made.scales[channel])
    else:
        multiplier, shift = made.multipliers[channel], made.shifts[channel]
        value = rule(acc, multiplier, shift, made.rounding)
    return np.clip(value + made.y_zero, made.low, made.high)


def by_parts(acc: Ints, form: Split, channel: int) -> Ints:
    """In 32 bits, as a core without a high product computes it."""
    if form.limit is not None:
        acc = np.clip(acc, -form.limit, form.limit)
    each = (form.uppers, form.lowers, form.offsets, form.shifts)
    upper, lower, offset, shift = (int(column[channel]) for column in each)
    first, second = acc * upper, acc * lower
    total = first + second // (1 << form.part) + offset
    if form.below is not None:
        total = total + np.where(acc < 0, form.below[channel], 0)
    for step in (first, second, total):
        assert INT32[0] <= step.min() and step.max() <= INT32[1]
    return np.clip(total // (1 << shift), form.low, form.high)


def by_rule(acc: Ints, form: Exact, channel: int) -> Ints:
    """Of the words of a channel's row, as a kernel reads them."""
    row = [int(word) for word in form.rows[channel]]
    if form.rounding == "even" and form.given == 1:
        value = in_float32(acc, float(np.int32(row[0]).view(np.float32)))
    elif form.rounding == "double":
        left = row[2] if form.given == 3 else 0
        moved = acc << left
        assert INT32[0] <= moved.min() and moved.max() <= INT32[1]
        value = rule(moved, row[0], -row[1], "double")
    else:
        value = rule(acc, row[0], 31 - row[1], form.rounding)
    return np.clip(value + form.zero_point, form.low, form.high)


def ended(acc: Ints, form: Affine | Split | Exact, channel: int) -> Ints:
    if isinstance(form, Exact):
        return by_rule(acc, form, channel)
    marks = form.uppers if isinstance(form, Split) else form.multipliers
    if marks[channel] < 0:
        assert form.exact is not None
        return by_rule(acc, form.exact, channel)
    if isinstance(form, Split):
        return by_parts(acc, form, channel)
    return cheap(acc, form, channel)


def wrong(form: Affine | Split | Exact, layer: Layer) -> int:
    """Sums of all channels at which the two differ."""
    made, lows, highs = layer
    count = 0
    for channel, (low, high) in enumerate(zip(lows, highs, strict=True)):
        acc = np.arange(low, high + 1)
        differ = ended(acc, form, channel) != wanted(acc, made, channel)
        count += int(np.count_nonzero(differ))
    return count


# ---- layers -----------------------------------------------------------------


def fixed(scale: float) -> tuple[int, int]:
    """A multiplier of 31 bits and its shift."""
    fraction, power = np.frexp(scale)
    return min(round(float(fraction) * Q31), Q31 - 1), int(power)


LARGE = (112, 117)  # seeds of layers with sums of many bits


def drawn(seed: int, rounding: str) -> Layer:
    """Three channels, whose scales are far apart and whose sums have few or many
    bits; one of eight layers has a channel that is always zero."""
    rng = np.random.default_rng(seed)
    scales = 2.0 ** (float(rng.choice([-13, -10, -8, -6, -4, -1, 3, 8])) -
                     rng.uniform(0, 2, 3))  # fmt: skip
    pairs = [fixed(scale) for scale in scales]
    if seed % 8 == 7:
        pairs[1], scales[1] = (0, 0), 0.0
    reach = rng.choice([900, 9000, 90_000], 3)
    reach[0] = 2_000_000 if seed in LARGE else reach[0]
    low, high = -rng.integers(1, reach), rng.integers(1, reach)
    zero = int(rng.choice([0, -128, 5, -3]))
    ends = [(-128, 127), (-128, 127), (zero, 127)][rng.integers(3)]
    floats = (*scales.tolist(),) if rounding == "even" else ()
    multipliers, shifts = zip(*pairs, strict=True)
    made = ConvParameters(rounding, multipliers, shifts, floats, 0, zero, *ends)
    return made, low.astype(np.int64), high.astype(np.int64)


def features(form: Affine | Split | Exact) -> set[str]:
    """What distinguishes the code of two forms."""
    if isinstance(form, Exact):
        return {form.key}
    kind = "affine" if isinstance(form, Affine) else "split"
    found = {"signed": form.below is not None, "clamped": form.clamped,
             "beside the rule": form.exact is not None}  # fmt: skip
    if isinstance(form, Affine):
        found |= {"based": form.base != 0, f"shift {form.shift}": True}
        found["its own shift"] = form.shift not in affine.SHIFTS
    else:
        found |= {"held": form.limit is not None, f"part {form.part}": True}
    return {f"{kind}, {name}" for name, is_so in found.items() if is_so}


EVERY = (
    {f"{kind}, {name}" for kind in ("affine", "split")
     for name in ("signed", "clamped", "beside the rule")}
    | {"affine, based", "affine, its own shift", "split, held"}
    | {f"affine, shift {shift}" for shift in affine.SHIFTS}
    | {f"split, part {part}" for part in affine_split.PARTS}
    | {f"exact_{rounding}" for rounding in RULES} | {"exact_double_left"}
)  # fmt: skip


def forms(seed: int) -> Iterator[tuple[Affine | Split | Exact, Layer]]:
    for rounding in ROUNDINGS:
        layer = made, low, _ = drawn(seed, rounding)
        yield affine_or_exact(*layer), layer
        yield split_or_exact(*layer), layer
        yield exact(made, len(low)), layer


def test_products_in_float32() -> None:
    """The second implementation against numpy's float32."""
    acc = np.arange(-(1 << 22), 1 << 22, 5)
    for scale in (0.0041944608783845835, 0.5, 2.0**-9, 0.7000001, 3.3e-7, 9.75):
        real = acc.astype(np.float32) * np.float32(scale)
        given = np.rint(real).astype(np.int64)
        np.testing.assert_array_equal(in_float32(acc, scale), given)


def test_each_form_at_every_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shifts and parts that few layers need are tried as if there were no other."""
    seen: set[str] = set()
    for seed in (*range(12), *LARGE):
        for form, layer in forms(seed):
            assert wrong(form, layer) == 0, (seed, layer[0], form)
            seen |= features(form)
    for seed, rounding in enumerate(("double", "single", "away", "even")):
        made, low, high = drawn(seed, rounding)
        layer = made, low // 20, high // 20
        for part in affine_split.PARTS:
            monkeypatch.setattr(affine_split, "PARTS", (part,))
            affine_split._proven.cache_clear()
            split = split_or_exact(*layer)
            assert wrong(split, layer) == 0, (seed, part)
            seen |= features(split)
    for shift in affine.SHIFTS:
        monkeypatch.setattr(affine, "SHIFTS", (shift,))
        affine._proven.cache_clear()
        for seed in range(3):
            layer = drawn(seed, "single")
            affine_form = affine_or_exact(*layer)
            assert wrong(affine_form, layer) == 0, (seed, shift)
            seen |= features(affine_form)
    affine._proven.cache_clear()
    affine_split._proven.cache_clear()
    assert seen >= EVERY, EVERY - seen


# ---- operators of few values ------------------------------------------------


def added(seed: int, rounding: str) -> AddParameters:
    rng = np.random.default_rng(seed)
    a, b = 2.0 ** rng.uniform(-9, 1, 2)
    out = 2.0 ** rng.uniform(-9, 2)
    zeros = (3, -5, 7)
    if rounding == "even":  # whole factors of one unit, and one rounding
        bits = int(rng.integers(9, 22))
        first, second = (int(f) for f in rng.integers(1, 1 << bits, 2))
        return AddParameters(rounding, -1, 0, zeros[0], first, 0, zeros[1], second, 0,
                             1, 31 - bits, zeros[2], -128, 127)  # fmt: skip
    unit = 2 * max(a, b)
    return AddParameters(rounding, 1, 20, zeros[0], *fixed(a / unit), zeros[1],
                         *fixed(b / unit), *fixed(unit / (out * (1 << 20))), zeros[2],
                         -128, 127)  # fmt: skip


def wanted_sums(made: AddParameters) -> Ints:
    """What the rule gives for each pair of values."""
    x = np.arange(-128, 128)
    if made.rounding == "even":
        a, b = (
            (x - made.a_zero) * made.a_multiplier,
            (x - made.b_zero) * made.b_multiplier,
        )
    else:
        a, b = (
            rule((x - zero) * (1 << made.left), factor, shift, made.rounding)
            for zero, factor, shift in (
                (made.a_zero, made.a_multiplier, made.a_shift),
                (made.b_zero, made.b_multiplier, made.b_shift),
            )
        )
    total = a[:, None] + made.sign * b
    whole = rule(total, made.multiplier, made.shift, made.rounding)
    return np.clip(whole + made.y_zero, made.low, made.high)


def by_two_factors(form: AffineAdd, made: AddParameters) -> Ints:
    """Each pair in 32 bits."""
    x = np.arange(-128, 128)
    a, b = x[:, None] * form.a_factor, x * form.b_factor
    total = a + b + form.offset
    for step in (a, b, a + b, total):
        assert INT32[0] <= step.min() and step.max() <= INT32[1]
    if form.base is None:
        whole = total // (1 << form.shift)
    else:
        whole = half_even(total, np.int64(1) << form.shift) + form.base
    return np.clip(whole, made.low, made.high)


def test_sums_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair of values; each shift as if there were no other."""
    shifts, count = set(), 0
    for only in ((), *((shift,) for shift in affine_add.SHIFTS)):
        if only:
            monkeypatch.setattr(affine_add, "SHIFTS", only)
        affine_add.affine_add.cache_clear()
        for seed in range(6 if only else 32):
            made = added(seed, ROUNDINGS[seed % 4])
            form = affine_add.affine_add(made)
            if form is None:
                continue
            np.testing.assert_array_equal(by_two_factors(form, made), wanted_sums(made))
            count += 1
            shifts |= {form.shift if form.base is None else "to even"}
    affine_add.affine_add.cache_clear()
    assert shifts >= {*affine_line.SHIFTS, "to even"} and count >= 45, (count, shifts)


def one_channel(made: MulParameters | MeanParameters) -> ConvParameters:
    return ConvParameters(made.rounding, (made.multiplier,), (made.shift,), (), 0,
                          made.y_zero, made.low, made.high)  # fmt: skip


def test_products_of_two() -> None:
    """Every product that two values have."""
    count = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        zeros = [int(z) for z in rng.integers(-128, 128, 3)]
        pair = fixed(2.0 ** rng.uniform(-12, 1))
        made = MulParameters(
            ROUNDINGS[seed % 4], *zeros[:2], *pair, zeros[2], -128, 127
        )
        form = of_products(made)
        if form is not None:
            corners = np.outer(*(np.asarray([-128, 127]) - zero for zero in zeros[:2]))
            layer = (
                one_channel(made),
                *([end] for end in (corners.min(), corners.max())),
            )
            assert wrong(form, layer) == 0, made
            count += 1
    assert count >= 16, count


def test_means() -> None:
    """Every sum: by a line where there are few, else by a high product."""
    shifts: set[object] = set()
    for seed in range(160):
        rng = np.random.default_rng(seed)
        count = int(rng.choice([2, 4, 9, 49, 250, 1000, 3000]))
        zeros = [int(z) for z in rng.integers(-128, 128, 2)]
        pair = fixed(2.0 ** rng.uniform(-2, 12) / count)
        made = MeanParameters(ROUNDINGS[seed % 4], count, *pair, *zeros, -128, 127)
        form = scaled_mean(made)
        if form is None:
            continue
        sums = np.arange(-128 * count, 127 * count + 1)
        above = sums - count * made.x_zero
        given = wanted(above, one_channel(made), 0)
        if isinstance(form, Line):
            total = sums * form.factor
            for step in (total, total + form.offset):
                assert INT32[0] <= step.min() and step.max() <= INT32[1]
            value = (total + form.offset) // (1 << form.shift)
            ended_sums = np.clip(value, form.low, form.high)
        else:
            assert form.start == -count * made.x_zero
            ended_sums = cheap(above, form.epilogue, 0)
        np.testing.assert_array_equal(ended_sums, given)
        shifts.add(form.shift if isinstance(form, Line) else "high")
    assert shifts >= {*affine_line.SHIFTS, "high"}, shifts
