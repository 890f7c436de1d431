"""The operations of vectors.py as functions of LLVM IR, for machines that have V."""

from __future__ import annotations

from collections.abc import Sequence

XLEN = "iXLEN"  # integers of a register, of 32 or 64 bits: emit/kernels/llvm_grows.py
_UP, _TO_EVEN, _DOWN = 0, 1, 2  # vxrm: ties up, ties to even, downwards
_BITS = {"b": "i8", "h": "i16"}
_KEEP = 3  # policy: what lanes behind the last hold does not matter


class _Kinds:
    """The types of vectors of so many lanes: in LLVM, and in names of intrinsics.

    registers  LMUL of words, as vsetvli has it
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        half = lanes // 2
        self.words, self.w = f"%crt.int32v{lanes}", f"nxv{half}i32"
        self.halves, self.h = f"%crt.int16v{lanes}", f"nxv{half}i16"
        self.bytes, self.b = f"%crt.int8v{lanes}", f"nxv{half}i8"
        self.registers = {16: 2, 32: 3}[lanes]
        self.mask, self.m = f"<vscale x {half} x i1>", f"nxv{half}i1"

    def named(self, elem: str) -> tuple[str, str]:
        """The type of a letter, and its name in intrinsics."""
        return {"b": (self.bytes, self.b), "h": (self.halves, self.h),
                "w": (self.words, self.w)}[elem]  # fmt: skip


class _Body:
    """The lines of one function, and the intrinsics that they call."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declared: list[str] = []
        self.count = 0

    def call(self, result: str, name: str, *args: tuple[str, str]) -> str:
        """A call; its value's name."""
        self.count += 1
        made = f"%r{self.count}"
        kinds = ", ".join(kind for kind, _ in args)
        given = ", ".join(f"{kind} {value}" for kind, value in args)
        self.declared.append(f"declare {result} @llvm.riscv.{name}({kinds})")
        self.lines.append(f"  {made} = call {result} @llvm.riscv.{name}({given})")
        return made

    def plain(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %r{self.count} = {text}")
        return f"%r{self.count}"

    def text(self, name: str, result: str, given: str, value: str) -> str:
        """The declarations and the function."""
        head = f"define internal {result} @{name}({given}) alwaysinline nounwind {{"
        length = f"  %vl = call {XLEN} @crt_wide(i32 %n)"
        return "\n".join([*self.declared, head, length, *self.lines,
                          f"  ret {result} {value}", "}"])  # fmt: skip

    def wide(self, number: str) -> str:
        """A number of 32 bits as a register has it."""
        return self.plain(f"call {XLEN} @crt_wide(i32 {number})")


def _vl() -> tuple[str, str]:
    return XLEN, "%vl"


def _lanes(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    args = (_vl(), (XLEN, "2"), (XLEN, str(t.registers)))
    count = f.call(XLEN, f"vsetvli.{XLEN}", *args)
    return "i32", "i32 %n", f.plain(f"call i32 @crt_narrow({XLEN} {count})")


def _load(t: _Kinds, f: _Body, elem: str) -> tuple[str, str, str]:
    kind, short = t.named(elem)
    args = ((kind, "poison"), ("ptr", "%from"), _vl())
    value = f.call(kind, f"vle.{short}.p0.{XLEN}", *args)
    return kind, "ptr %from, i32 %n", value


def _widened(t: _Kinds, f: _Body, elem: str, to: str) -> tuple[str, str, str]:
    """A load of elements that are widened."""
    given, value = _load(t, f, elem)[1:]
    (_, short), (kind, long) = t.named(elem), t.named(to)
    args = ((kind, "poison"), (t.named(elem)[0], value), _vl())
    return kind, given, f.call(kind, f"vsext.{long}.{short}.{XLEN}", *args)


def _strided(t: _Kinds, f: _Body, elem: str, to: str) -> tuple[str, str, str]:
    """Elements so many of them from each other, widened if they are asked so."""
    kind, short = t.named(elem)
    step = f.wide("%step")
    if elem == "h":
        step = f.plain(f"shl {XLEN} {step}, 1")
    args = ((kind, "poison"), ("ptr", "%from"), (XLEN, step), _vl())
    value = f.call(kind, f"vlse.{short}.p0.{XLEN}", *args)
    given = "ptr %from, i32 %step, i32 %n"
    if elem == to:
        return kind, given, value
    wide, long = t.named(to)
    extended = ((wide, "poison"), (kind, value), _vl())
    return wide, given, f.call(wide, f"vsext.{long}.{short}.{XLEN}", *extended)


def _correct(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    sign = _one(t, f, "vsra", "%v", "31", XLEN)
    total = _both(t, f, "vadd", "%v", _one(t, f, "vand", sign, "%low"))
    value = _one(t, f, "vadd", total, "%x")
    return t.words, f"{t.words} %v, i32 %x, i32 %low, i32 %n", value


def _even(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    even = (XLEN, str(_TO_EVEN))
    args = ((t.words, "poison"), (t.words, "%v"), (XLEN, f.wide("%x")), even, _vl())
    value = f.call(t.words, f"vssra.{t.w}.{XLEN}.{XLEN}", *args)
    return t.words, f"{t.words} %v, i32 %x, i32 %n", value


def _all(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    args = ((t.words, "poison"), ("i32", "%x"), _vl())
    return t.words, "i32 %x, i32 %n", f.call(t.words, f"vmv.v.x.{t.w}.{XLEN}", *args)


def _fill(t: _Kinds, f: _Body, elem: str) -> tuple[str, str, str]:
    (kind, short), bits = t.named(elem), _BITS[elem]
    args = ((kind, "poison"), (bits, f.plain(f"trunc i32 %x to {bits}")), _vl())
    return kind, "i32 %x, i32 %n", f.call(kind, f"vmv.v.x.{short}.{XLEN}", *args)


def _mac_one(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    x = f.plain("trunc i32 %x to i16")
    args = ((t.words, "%v"), ("i16", x), (t.halves, "%w"), _vl(), (XLEN, str(_KEEP)))
    value = f.call(t.words, f"vwmacc.{t.w}.i16.{t.h}.{XLEN}", *args)
    return t.words, f"{t.words} %v, i32 %x, {t.halves} %w, i32 %n", value


def _mac(t: _Kinds, f: _Body, wide: str = "w") -> tuple[str, str, str]:
    to, short, of, small = (
        (t.words, t.w, t.halves, t.h) if wide == "w" else (t.halves, t.h, t.bytes, t.b)
    )
    args = ((to, "%v"), (of, "%x"), (of, "%w"), _vl(), (XLEN, str(_KEEP)))
    value = f.call(to, f"vwmacc.{short}.{small}.{small}.{XLEN}", *args)
    return to, f"{to} %v, {of} %x, {of} %w, i32 %n", value


def _product(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    args = ((t.halves, "poison"), (t.bytes, "%x"), (t.bytes, "%w"), _vl())
    value = f.call(t.halves, f"vwmul.{t.h}.{t.b}.{t.b}.{XLEN}", *args)
    return t.halves, f"{t.bytes} %x, {t.bytes} %w, i32 %n", value


def _add(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    args = ((t.words, "poison"), (t.words, "%v"), (t.halves, "%h"), _vl())
    value = f.call(t.words, f"vwadd.w.{t.w}.{t.h}.{XLEN}", *args)
    return t.words, f"{t.words} %v, {t.halves} %h, i32 %n", value


def _both(
    t: _Kinds, f: _Body, name: str, a: str, b: str, more: Sequence[str] = ()
) -> str:
    """An instruction on two vectors of words."""
    last = ((XLEN, one) for one in more)
    args = ((t.words, "poison"), (t.words, a), (t.words, b), *last, _vl())
    return f.call(t.words, f"{name}.{t.w}.{t.w}.{XLEN}", *args)


def _one(t: _Kinds, f: _Body, name: str, a: str, x: str, kind: str = "") -> str:
    """An instruction on a vector of words and a number."""
    kind = kind or "i32"
    args = ((t.words, "poison"), (t.words, a), (kind, x), _vl())
    return f.call(t.words, f"{name}.{t.w}.{kind}.{XLEN}", *args)


def _words(t: _Kinds, f: _Body, name: str) -> tuple[str, str, str]:
    given = f"{t.words} %v, {t.words} %u, i32 %n"
    return t.words, given, _both(t, f, name, "%v", "%u")


def _number(t: _Kinds, f: _Body, name: str) -> tuple[str, str, str]:
    return t.words, f"{t.words} %v, i32 %x, i32 %n", _one(t, f, name, "%v", "%x")


def _line(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    args = ((t.words, "%v"), ("i32", "%x"), (t.words, "%u"), _vl(),
            (XLEN, str(_KEEP)))  # fmt: skip
    value = f.call(t.words, f"vmadd.{t.w}.i32.{XLEN}", *args)
    return t.words, f"{t.words} %v, i32 %x, {t.words} %u, i32 %n", value


def _halved(t: _Kinds, f: _Body, value: str, right: str) -> str:
    """A vector of words shifted to the right, held within int16."""
    down = (XLEN, str(_DOWN))
    args = ((t.halves, "poison"), (t.words, value), (XLEN, right), down, _vl())
    return f.call(t.halves, f"vnclip.{t.h}.{t.w}.{XLEN}.{XLEN}", *args)


def _clipped(t: _Kinds, f: _Body, value: str, right: str) -> str:
    """A vector of words shifted to the right, held within int8."""
    down, half = (XLEN, str(_DOWN)), _halved(t, f, value, right)
    args = ((t.bytes, "poison"), (t.halves, half), (XLEN, "0"), down, _vl())
    return f.call(t.bytes, f"vnclip.{t.b}.{t.h}.{XLEN}.{XLEN}", *args)


def _shifted(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    return t.bytes, f"{t.words} %v, i32 %x, i32 %n", _clipped(t, f, "%v", f.wide("%x"))


def _short(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    value = _halved(t, f, "%v", f.wide("%x"))
    return t.halves, f"{t.words} %v, i32 %x, i32 %n", value


def _raised(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    value = _one(t, f, "vsadd", "%v", "%x")
    return t.bytes, f"{t.words} %v, i32 %x, i32 %n", _clipped(t, f, value, "0")


def _hold(t: _Kinds, f: _Body, elem: str) -> tuple[str, str, str]:
    value, (kind, short), bits = "%b", t.named(elem), _BITS[elem]
    for name, end in (("vmax", "%low"), ("vmin", "%high")):
        small = f.plain(f"trunc i32 {end} to {bits}")
        args = ((kind, "poison"), (kind, value), (bits, small), _vl())
        value = f.call(kind, f"{name}.{short}.{bits}.{XLEN}", *args)
    return kind, f"{kind} %b, i32 %low, i32 %high, i32 %n", value


def _most(t: _Kinds, f: _Body, elem: str) -> tuple[str, str, str]:
    kind, short = t.named(elem)
    args = ((kind, "poison"), (kind, "%x"), (kind, "%w"), _vl())
    value = f.call(kind, f"vmax.{short}.{short}.{XLEN}", *args)
    return kind, f"{kind} %x, {kind} %w, i32 %n", value


def _table(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    args = ((t.bytes, "poison"), (t.bytes, "%b"), ("i8", "-128"), _vl())
    index = f.call(t.bytes, f"vxor.{t.b}.i8.{XLEN}", *args)
    args = ((t.bytes, "poison"), ("ptr", "%table"), (t.bytes, index), _vl())
    value = f.call(t.bytes, f"vluxei.{t.b}.p0.{t.b}.{XLEN}", *args)
    return t.bytes, f"ptr %table, {t.bytes} %b, i32 %n", value


def _rounded(t: _Kinds, f: _Body, value: str, right: str) -> str:
    """A vector shifted to the right by minus the numbers of another, ties up."""
    places = _one(t, f, "vrsub", right, "0")
    return _both(t, f, "vssra", value, places, (str(_UP),))


def _rule(t: _Kinds) -> str:
    return f"{t.words} %v, {t.words} %m, {t.words} %u, i32 %n"


def _twice(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    high = _both(t, f, "vsmul", "%v", "%m", (str(_UP),))
    sign = _one(t, f, "vsra", _both(t, f, "vand", high, "%u"), "31", XLEN)
    total = _both(t, f, "vadd", high, sign)
    return t.words, _rule(t), _rounded(t, f, total, "%u")


def _once(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    high = _both(t, f, "vmulh", "%v", "%m")
    return t.words, _rule(t), _rounded(t, f, high, "%u")


def _away(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    """Below zero, and with nothing behind the high half, it is 1 less."""
    high, low = (_both(t, f, name, "%v", "%m") for name in ("vmulh", "vmul"))
    # 0 - low has a sign, or low has: low is not 0
    minus = _one(t, f, "vrsub", low, "0")
    some = _one(t, f, "vsra", _both(t, f, "vor", low, minus), "31", XLEN)
    sign = _one(t, f, "vsra", high, "31", XLEN)
    # sign & ~some, which is -1 or 0: sign > some as words without a sign
    less = _both(t, f, "vand", sign, _one(t, f, "vxor", some, "-1"))
    total = _both(t, f, "vadd", high, less)
    return t.words, _rule(t), _rounded(t, f, total, "%u")


def _shifted_by(t: _Kinds, f: _Body, value: str, right: str) -> str:
    """A vector shifted to the right by minus a number, ties up."""
    places = f.wide(f.plain(f"sub i32 0, {right}"))
    args = ((t.words, "poison"), (t.words, value), (XLEN, places), (XLEN, str(_UP)))
    return f.call(t.words, f"vssra.{t.w}.{XLEN}.{XLEN}", *args, _vl())


def _up_one(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    args = ((t.words, "poison"), (t.words, "%v"), ("i32", "%x"), (XLEN, str(_UP)))
    value = f.call(t.words, f"vsmul.{t.w}.i32.{XLEN}", *args, _vl())
    return t.words, f"{t.words} %v, i32 %x, i32 %n", value


def _twice_one(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    """Right is not 0."""
    _, _, high = _up_one(t, f)
    total = _both(t, f, "vadd", high, _one(t, f, "vsra", high, "31", XLEN))
    given = f"{t.words} %v, i32 %x, i32 %low, i32 %n"
    return t.words, given, _shifted_by(t, f, total, "%low")


def _once_one(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    high = _one(t, f, "vmulh", "%v", "%x")
    given = f"{t.words} %v, i32 %x, i32 %low, i32 %n"
    return t.words, given, _shifted_by(t, f, high, "%low")


def _precise(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    """The high half of |v| times two words, rounded; then the sign of v."""
    size = _both(t, f, "vmax", "%v", _one(t, f, "vrsub", "%v", "0"))
    high, low = (_both(t, f, name, size, "%m") for name in ("vmulh", "vmul"))
    below = _both(t, f, "vmulhu", size, "%w")
    both = (t.words, low), (t.words, below)
    carry = f.call(t.mask, f"vmadc.{t.w}.{t.w}.{XLEN}", *both, _vl())
    raised = (t.words, "poison"), (t.words, high), ("i32", "0"), (t.mask, carry)
    total = f.call(t.words, f"vadc.{t.w}.i32.{XLEN}", *raised, _vl())
    sign = _one(t, f, "vsra", "%v", "31", XLEN)
    turned = _both(t, f, "vxor", _rounded(t, f, total, "%u"), sign)
    given = f"{t.words} %v, {t.words} %m, {t.words} %u, {t.words} %w, i32 %n"
    return t.words, given, _both(t, f, "vsub", turned, sign)


def _lift(t: _Kinds, f: _Body) -> tuple[str, str, str]:
    """v * 2^m: from the greatest that fits on, the end of int32 on its side."""
    moved = _both(t, f, "vsll", "%v", "%m")
    back = _both(t, f, "vsra", moved, "%m")
    sign = _one(t, f, "vsra", "%v", "31", XLEN)
    end = _one(t, f, "vxor", sign, str((1 << 31) - 1))
    compared = (t.words, back), (t.words, "%v")
    lost = f.call(t.mask, f"vmsne.{t.w}.{t.w}.{XLEN}", *compared, _vl())
    both = (t.words, moved), (t.words, end)
    args = ((t.words, "poison"), *both, (t.mask, lost), _vl())
    value = f.call(t.words, f"vmerge.{t.w}.{t.w}.{XLEN}", *args)
    return t.words, f"{t.words} %v, {t.words} %m, i32 %n", value


_OPERATIONS = {
    "lanes": _lanes,
    "bytes": lambda t, f: _load(t, f, "b"),
    "words": lambda t, f: _load(t, f, "w"),
    "halves": lambda t, f: _load(t, f, "h"),
    "widened": lambda t, f: _widened(t, f, "b", "h"),
    "long": lambda t, f: _widened(t, f, "b", "w"),
    "long_halves": lambda t, f: _widened(t, f, "h", "w"),
    "apart_bytes": lambda t, f: _strided(t, f, "b", "b"),
    "apart": lambda t, f: _strided(t, f, "b", "h"),
    "apart_halves": lambda t, f: _strided(t, f, "h", "h"),
    "correct": _correct,
    "even": _even,
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
    "shifted": _shifted,
    "raised": _raised,
    "short": _short,
    "hold": lambda t, f: _hold(t, f, "b"),
    "hold_halves": lambda t, f: _hold(t, f, "h"),
    "most": lambda t, f: _most(t, f, "b"),
    "most_halves": lambda t, f: _most(t, f, "h"),
    "table": _table,
    "lift": _lift,
    "twice": _twice,
    "once": _once,
    "away": _away,
    "twice_one": _twice_one,
    "once_one": _once_one,
    "up_one": _up_one,
    "precise": _precise,
}


def defined(name: str, lanes: int) -> str:
    """The function crt_NAME_vLANES, with the declarations of what it calls."""
    body = _Body()
    result, given, value = _OPERATIONS[name](_Kinds(lanes), body)
    return body.text(f"crt_{name}_v{lanes}", result, given, value)
