"""Vectors of 16 words as LLVM IR: kernels/base/wide_vectors.py. What the processor has
no instruction for is written so that LLVM finds the best that there is.
"""

from __future__ import annotations

from pybuild.kernels.base.wide_vectors import FEATURE, LANES, NAMES, TAPS

DOTS, HALF_DOTS = "wide_dots", "wide_half_dots"  # of a processor with vpdpbusd
PAIRS = "wide_pairs"  # of one with vpmaddwd
_V, _L, _F, _B = "<16 x i32>", "<16 x i64>", "<16 x float>", "<64 x i8>"
_HALF, _FEW = "<8 x i32>", "<16 x i8>"


def wide_features(processor: frozenset[str]) -> frozenset[str]:
    """The features that kernels and these definitions may use.

    processor  its features, as LLVM calls them
    """
    ours = [one for name, (one, _) in _PRODUCTS.items() if name in processor]
    return frozenset({FEATURE, *ours[:1]})


def _function(name: str, result: str, given: str, body: str) -> str:
    head = f"define internal {result} @{name}({given}) alwaysinline nounwind {{"
    return "\n".join([head, *(f"  {line}" for line in body.split("\n")), "}"])


def _mask(numbers: range) -> str:
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {n}' for n in numbers)}>"


def _part(vector: str, name: str, numbers: range) -> str:
    """Elements of a vector as one of fewer."""
    kind, value = vector.rsplit(" ", 1)
    return f"%{name} = shufflevector {kind} {value}, {kind} poison, {_mask(numbers)}"


def _joined(name: str, first: str, second: str) -> str:
    """Joins two halves of a vector of words."""
    whole = _mask(range(LANES))
    return f"%{name} = shufflevector {_HALF} %{first}, {_HALF} %{second}, {whole}"


def _all(value: str, kind: str = _V) -> str:
    """Puts one value into each lane, as `%all`."""
    elem = kind.split(" x ")[1].strip(">")
    return (
        f"%one = insertelement {kind} poison, {elem} {value}, i32 0\n"
        f"%all = shufflevector {kind} %one, {kind} poison, {_V} zeroinitializer"
    )


def _splat(value: int, bits: int = 32, lanes: int = LANES) -> str:
    return f"<{', '.join([f'i{bits} {value}'] * lanes)}>"


_WHOLE_DOT = f"""%r = call {_V} @llvm.x86.avx512.vpdpbusd.512({_V} %v, {_B} %x, {_B} %w)
ret {_V} %r"""
_HALF_BYTES = "<32 x i8>"


def _half_dot(begin: int) -> str:
    lanes, taps = LANES // 2, LANES * TAPS // 2
    return "\n".join(
        [
            _part(f"{_V} %v", f"v{begin}", range(lanes * begin, lanes * (begin + 1))),
            _part(f"{_B} %x", f"x{begin}", range(taps * begin, taps * (begin + 1))),
            _part(f"{_B} %w", f"w{begin}", range(taps * begin, taps * (begin + 1))),
            f"%r{begin} = call {_HALF} @llvm.x86.avx512.vpdpbusd.256("
            f"{_HALF} %v{begin}, {_HALF_BYTES} %x{begin}, {_HALF_BYTES} %w{begin})",
        ]
    )


_HALF_DOT = f"""{_half_dot(0)}
{_half_dot(1)}
{_joined("r", "r0", "r1")}
ret {_V} %r"""


def _pairs(name: str, odd: int) -> str:
    """The products of every second factor of 64 products."""
    kind, pick = "<64 x i16>", range(odd, LANES * TAPS, 2)
    return "\n".join(
        [
            _part(f"{kind} %xs", f"x{name}", pick),
            _part(f"{kind} %ws", f"w{name}", pick),
            f"%xl{name} = sext <32 x i16> %x{name} to <32 x i32>",
            f"%wl{name} = sext <32 x i16> %w{name} to <32 x i32>",
            f"%p{name} = mul <32 x i32> %xl{name}, %wl{name}",
        ]
    )


# as pairs, for which LLVM may find an instruction
_PLAIN_DOT = f"""%xs = zext {_B} %x to <64 x i16>
%ws = sext {_B} %w to <64 x i16>
{_pairs("e", 0)}
{_pairs("o", 1)}
%p = add <32 x i32> %pe, %po
{_part("<32 x i32> %p", "a", range(0, 2 * LANES, 2))}
{_part("<32 x i32> %p", "b", range(1, 2 * LANES, 2))}
%s = add {_V} %a, %b
%r = add {_V} %v, %s
ret {_V} %r"""

_SHORT, _PAIR = "<32 x i16>", "<16 x i16>"


def _pair_dot(name: str, begin: int) -> str:
    """Products of so many taps of 8 channels each, those side by side added."""
    numbers = range(LANES * begin, LANES * (begin + 1))
    return "\n".join(
        [
            _part(f"{_SHORT} %x{name}", f"x{name}{begin}", numbers),
            _part(f"{_SHORT} %w{name}", f"w{name}{begin}", numbers),
            f"%r{name}{begin} = call {_HALF} @llvm.x86.avx2.pmadd.wd("
            f"{_PAIR} %x{name}{begin}, {_PAIR} %w{name}{begin})",
        ]
    )


# the even taps of each lane and the odd ones, as int16: nothing moves between lanes
_PAIR_DOTS = "\n".join(
    [
        f"%xs = bitcast {_B} %x to {_SHORT}",
        f"%ws = bitcast {_B} %w to {_SHORT}",
        f"%xe = and {_SHORT} %xs, {_splat(255, 16, 32)}",
        f"%xo = lshr {_SHORT} %xs, {_splat(8, 16, 32)}",
        f"%up = shl {_SHORT} %ws, {_splat(8, 16, 32)}",
        f"%we = ashr {_SHORT} %up, {_splat(8, 16, 32)}",
        f"%wo = ashr {_SHORT} %ws, {_splat(8, 16, 32)}",
        *(_pair_dot(name, begin) for name in "eo" for begin in (0, 1)),
        _joined("e", "re0", "re1"),
        _joined("o", "ro0", "ro1"),
        f"%s = add {_V} %v, %e",
        f"%r = add {_V} %s, %o",
        f"ret {_V} %r",
    ]
)

# what a processor has, the widest first -> what kernels call that, and the product
_PRODUCTS = {
    "avx512vnni": (DOTS, _WHOLE_DOT),
    "avxvnni": (HALF_DOTS, _HALF_DOT),
    "avx2": (PAIRS, _PAIR_DOTS),
}

_PRODUCT = f"""%a = sext {_V} %v to {_L}
%b = sext {_V} %m to {_L}
%p = mul {_L} %a, %b"""
_RIGHT = f"""%r = sub {_V} zeroinitializer, %n
%s = zext {_V} %r to {_L}"""


def _held(value: str, result: str) -> str:
    """Within %low and %high."""
    return f"""%lo = insertelement {_V} poison, i32 %low, i32 0
%las = shufflevector {_V} %lo, {_V} poison, {_V} zeroinitializer
%hi = insertelement {_V} poison, i32 %high, i32 0
%his = shufflevector {_V} %hi, {_V} poison, {_V} zeroinitializer
%up = call {_V} @llvm.smax.v16i32({_V} {value}, {_V} %las)
{result} = call {_V} @llvm.smin.v16i32({_V} %up, {_V} %his)"""


_TWO, _THREE = f"{_V} %v, {_V} %m", f"{_V} %v, {_V} %m, {_V} %n"
_RULES = {
    "crt_scale16": (
        _V,
        _TWO,
        f"%s = shl {_V} %v, {_splat(8)}\n%r = add {_V} %s, %m\nret {_V} %r",
    ),
    "crt_mulhi16": (
        _V,
        _TWO,
        f"{_PRODUCT}\n%h = ashr {_L} %p, {_splat(32, 64)}\n"
        f"%r = trunc {_L} %h to {_V}\nret {_V} %r",
    ),
    "crt_add16": (
        _V,
        f"{_V} %v, i32 %n",
        f"{_all('%n')}\n%r = add {_V} %v, %all\nret {_V} %r",
    ),
    "crt_narrow16": (
        _V,
        f"{_V} %v, i32 %n, i32 %low, i32 %high",
        f"{_all('%n')}\n%s = ashr {_V} %v, %all\n{_held('%s', '%r')}\nret {_V} %r",
    ),
    "crt_hold16": (
        _V,
        f"{_V} %v, i32 %low, i32 %high, i32 %n",
        f"{_held('%v', '%h')}\n{_all('%n')}\n%r = add {_V} %h, %all\nret {_V} %r",
    ),
    "crt_lift16": (
        _V,
        _TWO,
        f"""%a = sext {_V} %v to {_L}
%b = zext {_V} %m to {_L}
%p = shl {_L} %a, %b
%l = call {_L} @llvm.smax.v16i64({_L} %p, {_L} {_splat(-(1 << 31), 64)})
%h = call {_L} @llvm.smin.v16i64({_L} %l, {_L} {_splat((1 << 31) - 1, 64)})
%r = trunc {_L} %h to {_V}
ret {_V} %r""",
    ),
    "crt_twice16": (
        _V,
        _THREE,
        f"""{_PRODUCT}
{_RIGHT}
%q = add {_L} %p, {_splat(1 << 30, 64)}
%h = ashr {_L} %q, {_splat(31, 64)}
%o = shl {_L} {_splat(1, 64)}, %s
%half = lshr {_L} %o, {_splat(1, 64)}
%some = ashr {_V} %n, {_splat(31)}
%c = sext {_V} %some to {_L}
%sign = ashr {_L} %h, {_splat(63, 64)}
%below = and {_L} %sign, %c
%t = add {_L} %h, %half
%u = add {_L} %t, %below
%y = ashr {_L} %u, %s
%z = trunc {_L} %y to {_V}
ret {_V} %z""",
    ),
    "crt_once16": (
        _V,
        _THREE,
        f"""{_PRODUCT}
%h = ashr {_L} %p, {_splat(32, 64)}
%k = trunc {_L} %h to {_V}
{_RIGHT}
%f = sub {_V} {_splat(-1)}, %n
%half = shl {_V} {_splat(1)}, %f
%t = add {_V} %k, %half
%y = ashr {_V} %t, %r
ret {_V} %y""",
    ),
    "crt_away16": (
        _V,
        _THREE,
        f"""{_PRODUCT}
{_RIGHT}
%t = add {_L} %s, {_splat(31, 64)}
%half = shl {_L} {_splat(1, 64)}, %t
%sign = ashr {_L} %p, {_splat(63, 64)}
%q = add {_L} %p, %half
%u = add {_L} %q, %sign
%f = add {_L} %s, {_splat(32, 64)}
%y = ashr {_L} %u, %f
%z = trunc {_L} %y to {_V}
ret {_V} %z""",
    ),
    # 1.5 * 2^23 leaves the integer, rounded to even, in the lowest bits
    "crt_scaled16": (
        _V,
        _TWO,
        f"""%x = sitofp {_V} %v to {_F}
%f = bitcast {_V} %m to {_F}
%p = fmul {_F} %x, %f
%u = call {_F} @llvm.maxnum.v16f32({_F} %p, {_F} splat (float -512.0))
%d = call {_F} @llvm.minnum.v16f32({_F} %u, {_F} splat (float 511.0))
%a = fadd {_F} %d, splat (float 12582912.0)
%b = bitcast {_F} %a to {_V}
%r = sub {_V} %b, {_splat(0x4B400000)}
ret {_V} %r""",
    ),
    "crt_flip16": (
        _FEW,
        f"{_FEW} %x",
        f"%r = xor {_FEW} %x, {_splat(-128, 8)}\nret {_FEW} %r",
    ),
    "crt_add_product16": (
        _F,
        f"{_F} %v, float %x, {_F} %w",
        f"{_all('%x', _F)}\n%p = fmul {_F} %all, %w\n%r = fadd {_F} %v, %p\n"
        f"ret {_F} %r",
    ),
    "crt_add_products16": (
        _F,
        f"{_F} %v, {_F} %x, {_F} %w",
        f"%p = fmul {_F} %x, %w\n%r = fadd {_F} %v, %p\nret {_F} %r",
    ),
    "crt_at_least16": (
        _F,
        f"{_F} %v, float %x",
        f"{_all('%x', _F)}\n%c = fcmp olt {_F} %v, %all\n"
        f"%r = select <16 x i1> %c, {_F} %all, {_F} %v\nret {_F} %r",
    ),
    "crt_at_most16": (
        _F,
        f"{_F} %v, float %x",
        f"{_all('%x', _F)}\n%c = fcmp olt {_F} %all, %v\n"
        f"%r = select <16 x i1> %c, {_F} %all, {_F} %v\nret {_F} %r",
    ),
    "crt_spread16": (
        _B,
        "i32 %n",
        f"{_all('%n')}\n%r = bitcast {_V} %all to {_B}\nret {_B} %r",
    ),
}
_DECLARED = f"""
declare {_V} @llvm.x86.avx512.vpdpbusd.512({_V}, {_B}, {_B})
declare {_HALF} @llvm.x86.avx512.vpdpbusd.256({_HALF}, {_HALF_BYTES}, {_HALF_BYTES})
declare {_HALF} @llvm.x86.avx2.pmadd.wd({_PAIR}, {_PAIR})
declare {_V} @llvm.smax.v16i32({_V}, {_V})
declare {_V} @llvm.smin.v16i32({_V}, {_V})
declare {_L} @llvm.smax.v16i64({_L}, {_L})
declare {_L} @llvm.smin.v16i64({_L}, {_L})
declare {_F} @llvm.maxnum.v16f32({_F}, {_F})
declare {_F} @llvm.minnum.v16f32({_F}, {_F})"""


def definitions(features: frozenset[str], code: str) -> list[str]:
    """The functions that `code` calls, if it does."""
    if not any(name in code for name in NAMES):
        return []
    own = (body for one, body in _PRODUCTS.values() if one in features)
    dot = next(own, _PLAIN_DOT)
    rules = {**_RULES, "crt_dot4x16": (_V, f"{_V} %v, {_B} %x, {_B} %w", dot)}
    return [_DECLARED, *(_function(n, *parts) for n, parts in rules.items())]
