"""Operations of vectors.py that round or narrow, as functions of LLVM IR."""

from __future__ import annotations

from pybuild.kernels.rvv.llvm_body import (
    BITS,
    DOWN,
    TO_EVEN,
    UP,
    XLEN,
    Body,
    Kinds,
    both,
    length,
    one,
)


def even(t: Kinds, f: Body) -> tuple[str, str, str]:
    even = (XLEN, str(TO_EVEN))
    args = ((t.words, "poison"), (t.words, "%v"), (XLEN, f.wide("%x")), even, length())
    value = f.call(t.words, f"vssra.{t.w}.{XLEN}.{XLEN}", *args)
    return t.words, f"{t.words} %v, i32 %x, i32 %n", value


def _halved(t: Kinds, f: Body, value: str, right: str) -> str:
    """A vector of words shifted to the right, held within int16."""
    down = (XLEN, str(DOWN))
    args = ((t.halves, "poison"), (t.words, value), (XLEN, right), down, length())
    return f.call(t.halves, f"vnclip.{t.h}.{t.w}.{XLEN}.{XLEN}", *args)


def _clipped(t: Kinds, f: Body, value: str, right: str) -> str:
    """A vector of words shifted to the right, held within int8."""
    down, half = (XLEN, str(DOWN)), _halved(t, f, value, right)
    args = ((t.bytes, "poison"), (t.halves, half), (XLEN, "0"), down, length())
    return f.call(t.bytes, f"vnclip.{t.b}.{t.h}.{XLEN}.{XLEN}", *args)


def shifted(t: Kinds, f: Body) -> tuple[str, str, str]:
    return t.bytes, f"{t.words} %v, i32 %x, i32 %n", _clipped(t, f, "%v", f.wide("%x"))


def short(t: Kinds, f: Body) -> tuple[str, str, str]:
    value = _halved(t, f, "%v", f.wide("%x"))
    return t.halves, f"{t.words} %v, i32 %x, i32 %n", value


def raised(t: Kinds, f: Body) -> tuple[str, str, str]:
    value = one(t, f, "vsadd", "%v", "%x")
    return t.bytes, f"{t.words} %v, i32 %x, i32 %n", _clipped(t, f, value, "0")


def hold(t: Kinds, f: Body, elem: str) -> tuple[str, str, str]:
    value, (kind, short), bits = "%b", t.named(elem), BITS[elem]
    for name, end in (("vmax", "%low"), ("vmin", "%high")):
        small = f.plain(f"trunc i32 {end} to {bits}")
        args = ((kind, "poison"), (kind, value), (bits, small), length())
        value = f.call(kind, f"{name}.{short}.{bits}.{XLEN}", *args)
    return kind, f"{kind} %b, i32 %low, i32 %high, i32 %n", value


def most(t: Kinds, f: Body, elem: str) -> tuple[str, str, str]:
    kind, short = t.named(elem)
    args = ((kind, "poison"), (kind, "%x"), (kind, "%w"), length())
    value = f.call(kind, f"vmax.{short}.{short}.{XLEN}", *args)
    return kind, f"{kind} %x, {kind} %w, i32 %n", value


def _rounded(t: Kinds, f: Body, value: str, right: str) -> str:
    """A vector shifted to the right by minus the numbers of another, ties up."""
    places = one(t, f, "vrsub", right, "0")
    return both(t, f, "vssra", value, places, (str(UP),))


def _rule(t: Kinds) -> str:
    return f"{t.words} %v, {t.words} %m, {t.words} %u, i32 %n"


def twice(t: Kinds, f: Body) -> tuple[str, str, str]:
    high = both(t, f, "vsmul", "%v", "%m", (str(UP),))
    sign = one(t, f, "vsra", both(t, f, "vand", high, "%u"), "31", XLEN)
    total = both(t, f, "vadd", high, sign)
    return t.words, _rule(t), _rounded(t, f, total, "%u")


def once(t: Kinds, f: Body) -> tuple[str, str, str]:
    high = both(t, f, "vmulh", "%v", "%m")
    return t.words, _rule(t), _rounded(t, f, high, "%u")


def away(t: Kinds, f: Body) -> tuple[str, str, str]:
    """Below zero, and with nothing behind the high half, it is 1 less."""
    high, low = (both(t, f, name, "%v", "%m") for name in ("vmulh", "vmul"))
    # 0 - low has a sign, or low has: low is not 0
    minus = one(t, f, "vrsub", low, "0")
    some = one(t, f, "vsra", both(t, f, "vor", low, minus), "31", XLEN)
    sign = one(t, f, "vsra", high, "31", XLEN)
    # sign & ~some, which is -1 or 0: sign > some as words without a sign
    less = both(t, f, "vand", sign, one(t, f, "vxor", some, "-1"))
    total = both(t, f, "vadd", high, less)
    return t.words, _rule(t), _rounded(t, f, total, "%u")


def _shifted_by(t: Kinds, f: Body, value: str, right: str) -> str:
    """A vector shifted to the right by minus a number, ties up."""
    places = f.wide(f.plain(f"sub i32 0, {right}"))
    args = ((t.words, "poison"), (t.words, value), (XLEN, places), (XLEN, str(UP)))
    return f.call(t.words, f"vssra.{t.w}.{XLEN}.{XLEN}", *args, length())


def up_one(t: Kinds, f: Body) -> tuple[str, str, str]:
    args = ((t.words, "poison"), (t.words, "%v"), ("i32", "%x"), (XLEN, str(UP)))
    value = f.call(t.words, f"vsmul.{t.w}.i32.{XLEN}", *args, length())
    return t.words, f"{t.words} %v, i32 %x, i32 %n", value


def twice_one(t: Kinds, f: Body) -> tuple[str, str, str]:
    """Right is not 0."""
    _, _, high = up_one(t, f)
    total = both(t, f, "vadd", high, one(t, f, "vsra", high, "31", XLEN))
    given = f"{t.words} %v, i32 %x, i32 %low, i32 %n"
    return t.words, given, _shifted_by(t, f, total, "%low")


def once_one(t: Kinds, f: Body) -> tuple[str, str, str]:
    high = one(t, f, "vmulh", "%v", "%x")
    given = f"{t.words} %v, i32 %x, i32 %low, i32 %n"
    return t.words, given, _shifted_by(t, f, high, "%low")


def precise(t: Kinds, f: Body) -> tuple[str, str, str]:
    """The high half of |v| times two words, rounded; then the sign of v."""
    size = both(t, f, "vmax", "%v", one(t, f, "vrsub", "%v", "0"))
    high, low = (both(t, f, name, size, "%m") for name in ("vmulh", "vmul"))
    below = both(t, f, "vmulhu", size, "%w")
    pair = (t.words, low), (t.words, below)
    carry = f.call(t.mask, f"vmadc.{t.w}.{t.w}.{XLEN}", *pair, length())
    raised = (t.words, "poison"), (t.words, high), ("i32", "0"), (t.mask, carry)
    total = f.call(t.words, f"vadc.{t.w}.i32.{XLEN}", *raised, length())
    sign = one(t, f, "vsra", "%v", "31", XLEN)
    turned = both(t, f, "vxor", _rounded(t, f, total, "%u"), sign)
    given = f"{t.words} %v, {t.words} %m, {t.words} %u, {t.words} %w, i32 %n"
    return t.words, given, both(t, f, "vsub", turned, sign)


def lift(t: Kinds, f: Body) -> tuple[str, str, str]:
    """v * 2^m: from the greatest that fits on, the end of int32 on its side."""
    moved = both(t, f, "vsll", "%v", "%m")
    back = both(t, f, "vsra", moved, "%m")
    sign = one(t, f, "vsra", "%v", "31", XLEN)
    end = one(t, f, "vxor", sign, str((1 << 31) - 1))
    compared = (t.words, back), (t.words, "%v")
    lost = f.call(t.mask, f"vmsne.{t.w}.{t.w}.{XLEN}", *compared, length())
    pair = (t.words, moved), (t.words, end)
    args = ((t.words, "poison"), *pair, (t.mask, lost), length())
    value = f.call(t.words, f"vmerge.{t.w}.{t.w}.{XLEN}", *args)
    return t.words, f"{t.words} %v, {t.words} %m, i32 %n", value
