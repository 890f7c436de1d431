"""The operations of vectors.py as functions of LLVM IR, for machines that have V."""

from __future__ import annotations

from pybuild.kernels.rvv import llvm_rounds as rounds
from pybuild.kernels.rvv.llvm_body import (
    BITS,
    KEEP,
    XLEN,
    Body,
    Kinds,
    both,
    length,
    one,
)


def _lanes(t: Kinds, f: Body) -> tuple[str, str, str]:
    args = (length(), (XLEN, "2"), (XLEN, str(t.registers)))
    count = f.call(XLEN, f"vsetvli.{XLEN}", *args)
    return "i32", "i32 %n", f.plain(f"call i32 @crt_narrow({XLEN} {count})")


def _load(t: Kinds, f: Body, elem: str) -> tuple[str, str, str]:
    kind, short = t.named(elem)
    args = ((kind, "poison"), ("ptr", "%from"), length())
    value = f.call(kind, f"vle.{short}.p0.{XLEN}", *args)
    return kind, "ptr %from, i32 %n", value


def _widened(t: Kinds, f: Body, elem: str, to: str) -> tuple[str, str, str]:
    """A load of elements that are widened."""
    given, value = _load(t, f, elem)[1:]
    (_, short), (kind, long) = t.named(elem), t.named(to)
    args = ((kind, "poison"), (t.named(elem)[0], value), length())
    return kind, given, f.call(kind, f"vsext.{long}.{short}.{XLEN}", *args)


def _strided(t: Kinds, f: Body, elem: str) -> tuple[str, str, str]:
    """Elements so many of them from each other."""
    kind, short = t.named(elem)
    step = f.wide("%step")
    if elem == "h":
        step = f.plain(f"shl {XLEN} {step}, 1")
    args = ((kind, "poison"), ("ptr", "%from"), (XLEN, step), length())
    value = f.call(kind, f"vlse.{short}.p0.{XLEN}", *args)
    return kind, "ptr %from, i32 %step, i32 %n", value


def _lowered(t: Kinds, f: Body) -> tuple[str, str, str]:
    value = _load(t, f, "b")[2]
    less = f.plain("trunc i32 %x to i8")
    args = ((t.halves, "poison"), (t.bytes, value), ("i8", less), length())
    made = f.call(t.halves, f"vwsub.{t.h}.{t.b}.i8.{XLEN}", *args)
    return t.halves, "ptr %from, i32 %x, i32 %n", made


def _entries(t: Kinds, f: Body) -> tuple[str, str, str]:
    args = ((t.halves, "poison"), (t.halves, "%h"), (XLEN, "2"), length())
    at = f.call(t.halves, f"vsll.{t.h}.{XLEN}.{XLEN}", *args)
    places = ((t.words, "poison"), ("ptr", "%table"), (t.halves, at), length())
    value = f.call(t.words, f"vluxei.{t.w}.p0.{t.h}.{XLEN}", *places)
    return t.words, f"ptr %table, {t.halves} %h, i32 %n", value


def _halves_plus(t: Kinds, f: Body) -> tuple[str, str, str]:
    x = f.plain("trunc i32 %x to i16")
    args = ((t.halves, "poison"), (t.halves, "%h"), ("i16", x), length())
    value = f.call(t.halves, f"vadd.{t.h}.i16.{XLEN}", *args)
    return t.halves, f"{t.halves} %h, i32 %x, i32 %n", value


def _reduced(
    t: Kinds, f: Body, name: str, elem: str, letter: str, start: str
) -> tuple[str, str, str]:
    """One number of n lanes; a register holds the start, and the result."""
    (kind, short), lanes = t.named(elem), {"b": 8, "w": 2}[elem]
    bits = {"b": "i8", "w": "i32"}[elem]
    one, mark = f"<vscale x {lanes} x {bits}>", f"nxv{lanes}{bits}"
    given = ((one, "poison"), (bits, start), (XLEN, "1"))
    first = f.call(one, f"vmv.s.x.{mark}.{XLEN}", *given)
    args = ((one, "poison"), (kind, f"%{letter}"), (one, first), length())
    made = f.call(one, f"{name}.{mark}.{short}.{XLEN}", *args)
    value = f.call(bits, f"vmv.x.s.{mark}", (one, made))
    if bits != "i32":
        value = f.plain(f"sext {bits} {value} to i32")
    return "i32", f"{kind} %{letter}, i32 %n", value


def _correct(t: Kinds, f: Body) -> tuple[str, str, str]:
    sign = one(t, f, "vsra", "%v", "31", XLEN)
    total = both(t, f, "vadd", "%v", one(t, f, "vand", sign, "%low"))
    value = one(t, f, "vadd", total, "%x")
    return t.words, f"{t.words} %v, i32 %x, i32 %low, i32 %n", value


def _right(t: Kinds, f: Body) -> tuple[str, str, str]:
    value = one(t, f, "vsra", "%v", f.wide("%x"), XLEN)
    return t.words, f"{t.words} %v, i32 %x, i32 %n", value


def _all(t: Kinds, f: Body) -> tuple[str, str, str]:
    args = ((t.words, "poison"), ("i32", "%x"), length())
    return t.words, "i32 %x, i32 %n", f.call(t.words, f"vmv.v.x.{t.w}.{XLEN}", *args)


def _fill(t: Kinds, f: Body, elem: str) -> tuple[str, str, str]:
    (kind, short), bits = t.named(elem), BITS[elem]
    args = ((kind, "poison"), (bits, f.plain(f"trunc i32 %x to {bits}")), length())
    return kind, "i32 %x, i32 %n", f.call(kind, f"vmv.v.x.{short}.{XLEN}", *args)


def _mac_one(t: Kinds, f: Body) -> tuple[str, str, str]:
    x = f.plain("trunc i32 %x to i16")
    args = ((t.words, "%v"), ("i16", x), (t.halves, "%w"), length(), (XLEN, str(KEEP)))
    value = f.call(t.words, f"vwmacc.{t.w}.i16.{t.h}.{XLEN}", *args)
    return t.words, f"{t.words} %v, i32 %x, {t.halves} %w, i32 %n", value


def _mac(t: Kinds, f: Body, wide: str = "w") -> tuple[str, str, str]:
    to, short, of, small = (
        (t.words, t.w, t.halves, t.h) if wide == "w" else (t.halves, t.h, t.bytes, t.b)
    )
    args = ((to, "%v"), (of, "%x"), (of, "%w"), length(), (XLEN, str(KEEP)))
    value = f.call(to, f"vwmacc.{short}.{small}.{small}.{XLEN}", *args)
    return to, f"{to} %v, {of} %x, {of} %w, i32 %n", value


def _product(t: Kinds, f: Body) -> tuple[str, str, str]:
    args = ((t.halves, "poison"), (t.bytes, "%x"), (t.bytes, "%w"), length())
    value = f.call(t.halves, f"vwmul.{t.h}.{t.b}.{t.b}.{XLEN}", *args)
    return t.halves, f"{t.bytes} %x, {t.bytes} %w, i32 %n", value


def _add(t: Kinds, f: Body) -> tuple[str, str, str]:
    args = ((t.words, "poison"), (t.words, "%v"), (t.halves, "%h"), length())
    value = f.call(t.words, f"vwadd.w.{t.w}.{t.h}.{XLEN}", *args)
    return t.words, f"{t.words} %v, {t.halves} %h, i32 %n", value


def _words(t: Kinds, f: Body, name: str) -> tuple[str, str, str]:
    given = f"{t.words} %v, {t.words} %u, i32 %n"
    return t.words, given, both(t, f, name, "%v", "%u")


def _number(t: Kinds, f: Body, name: str) -> tuple[str, str, str]:
    return t.words, f"{t.words} %v, i32 %x, i32 %n", one(t, f, name, "%v", "%x")


def _line(t: Kinds, f: Body) -> tuple[str, str, str]:
    args = ((t.words, "%v"), ("i32", "%x"), (t.words, "%u"), length(),
            (XLEN, str(KEEP)))  # fmt: skip
    value = f.call(t.words, f"vmadd.{t.w}.i32.{XLEN}", *args)
    return t.words, f"{t.words} %v, i32 %x, {t.words} %u, i32 %n", value


def _table(t: Kinds, f: Body) -> tuple[str, str, str]:
    args = ((t.bytes, "poison"), (t.bytes, "%b"), ("i8", "-128"), length())
    index = f.call(t.bytes, f"vxor.{t.b}.i8.{XLEN}", *args)
    args = ((t.bytes, "poison"), ("ptr", "%table"), (t.bytes, index), length())
    value = f.call(t.bytes, f"vluxei.{t.b}.p0.{t.b}.{XLEN}", *args)
    return t.bytes, f"ptr %table, {t.bytes} %b, i32 %n", value


_OPERATIONS = {
    "lanes": _lanes,
    "bytes": lambda t, f: _load(t, f, "b"),
    "words": lambda t, f: _load(t, f, "w"),
    "halves": lambda t, f: _load(t, f, "h"),
    "widened": lambda t, f: _widened(t, f, "b", "h"),
    "long": lambda t, f: _widened(t, f, "b", "w"),
    "long_halves": lambda t, f: _widened(t, f, "h", "w"),
    "apart_bytes": lambda t, f: _strided(t, f, "b"),
    "apart_halves": lambda t, f: _strided(t, f, "h"),
    "correct": _correct,
    "even": rounds.even,
    "products": lambda t, f: _words(t, f, "vmul"),
    "all": _all,
    "fill": lambda t, f: _fill(t, f, "b"),
    "fill_halves": lambda t, f: _fill(t, f, "h"),
    "mac_one": _mac_one,
    "mac": _mac,
    "product": _product,
    "more": lambda t, f: _mac(t, f, "h"),
    "add": _add,
    "sum": lambda t, f: _words(t, f, "vadd"),
    "less": lambda t, f: _words(t, f, "vsub"),
    "plus": lambda t, f: _number(t, f, "vadd"),
    "times": lambda t, f: _number(t, f, "vmul"),
    "line": _line,
    "high": lambda t, f: _words(t, f, "vmulh"),
    "high_one": lambda t, f: _number(t, f, "vmulh"),
    "shifted": rounds.shifted,
    "raised": rounds.raised,
    "short": rounds.short,
    "hold": lambda t, f: rounds.hold(t, f, "b"),
    "hold_halves": lambda t, f: rounds.hold(t, f, "h"),
    "most": lambda t, f: rounds.most(t, f, "b"),
    "most_halves": lambda t, f: rounds.most(t, f, "h"),
    "table": _table,
    "lift": rounds.lift,
    "twice": rounds.twice,
    "once": rounds.once,
    "away": rounds.away,
    "lowered": _lowered,
    "entries": _entries,
    "halves_plus": _halves_plus,
    "right": _right,
    "total": lambda t, f: _reduced(t, f, "vredsum", "w", "v", "0"),
    "greatest": lambda t, f: _reduced(t, f, "vredmax", "b", "b", "-128"),
    "twice_one": rounds.twice_one,
    "once_one": rounds.once_one,
    "up_one": rounds.up_one,
    "precise": rounds.precise,
}


def defined(name: str, lanes: int) -> str:
    """The function crt_NAME_vLANES, with the declarations of what it calls."""
    body = Body()
    result, given, value = _OPERATIONS[name](Kinds(lanes), body)
    return body.text(f"crt_{name}_v{lanes}", result, given, value)
