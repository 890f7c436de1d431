"""What an LLVM module for Cortex-M55 declares of kernels/base/vector_eights.py."""

from __future__ import annotations

_KIND = "<8 x i16>"
_HIGH = "llvm.arm.mve.vqrdmulh.v8i16"


def _all(n: int | str, kind: str = _KIND) -> str:
    """A vector of constants."""
    return f"splat ({kind.split()[-1][:-1]} {n})"


def _splat(n: str, name: str) -> str:
    """Lines that have the low half of a number in each lane."""
    return f"""\
  %{name}t = trunc i32 {n} to i16
  %{name}1 = insertelement {_KIND} poison, i16 %{name}t, i32 0
  %{name} = shufflevector {_KIND} %{name}1, {_KIND} poison, {_ZEROS}"""


_ZEROS = "<8 x i32> zeroinitializer"


def _function(name: str, given: str, body: str, result: str = _KIND) -> str:
    """One whose result is %r; of `given` x, y, z are vectors, n and m numbers."""
    kinds = {"v": "<4 x i32>", "n": "i32", "m": "i32"}
    params = ", ".join(f"{kinds.get(one, _KIND)} %{one}" for one in given)
    return f"""
define internal {result} @{name}({params}) alwaysinline nounwind {{
{body}
  ret {result} %r
}}"""


def _called(function: str, given: str, kind: str = _KIND) -> str:
    return f"  %r = call {kind} @{function}({given})"


_TWO = f"{_KIND} %x, {_KIND} %y"
_PRODUCT = "llvm.arm.mve.vmull.int.v4i32.v8i16"
_SHIFT = "llvm.arm.mve.vshl.scalar.v8i16"

_WORD = "<4 x i32>"
_GATHER = (
    f"call {_WORD} @llvm.arm.mve.vldr.gather.offset.v4i32.p0.v4i32(ptr %{{}},\n"
    f"    {_WORD} %at, i32 16, i32 1, i32 1)"
)


def _words(n: str, name: str) -> str:
    """Lines that have a number in each lane of four."""
    return f"""\
  %{name}1 = insertelement {_WORD} poison, i32 {n}, i32 0
  %{name} = shufflevector {_WORD} %{name}1, {_WORD} poison, {_WORD} zeroinitializer"""


_BETWEEN = f"""
define internal {_WORD} @crt_curve4(ptr %p, {_WORD} %d, i32 %n, i32 %top)
    alwaysinline nounwind {{
  %is8 = icmp slt i32 %n, 9
  %h = select i1 %is8, i32 8388608, i32 0
  %m = select i1 %is8, i32 8388607, i32 33554431
  %n1 = add i32 %n, 1
  %e = select i1 %is8, i32 %n, i32 %n1
  %ne = sub i32 0, %e
  %one = shl i32 1, %n
  %ones = sub i32 %one, 1
  %tops = shl i32 %top, %n
{_words("%h", "half")}
{_words("%m", "most")}
{_words("%n", "bits")}
{_words("%ones", "mask")}
{_words("%tops", "last")}
  %neg = sub {_WORD} zeroinitializer, %d
  %size = call {_WORD} @llvm.smax.v4i32({_WORD} %d, {_WORD} %neg)
  %cell = ashr {_WORD} %size, %bits
  %at = call {_WORD} @llvm.smin.v4i32({_WORD} %cell, {_WORD} splat (i32 254))
  %first = {_GATHER.format("p")}
  %q = getelementptr i16, ptr %p, i32 1
  %after = {_GATHER.format("q")}
  %rise = sub {_WORD} %after, %first
  %rest = and {_WORD} %size, %mask
  %more = mul {_WORD} %rest, %rise
  %whole = shl {_WORD} %first, %bits
  %sum = add {_WORD} %whole, %more
  %beyond = icmp sgt {_WORD} %cell, splat (i32 254)
  %t = select <4 x i1> %beyond, {_WORD} %last, {_WORD} %sum
  %below = sub {_WORD} %most, %t
  %above = sub {_WORD} %t, %half
  %is = icmp slt {_WORD} %d, zeroinitializer
  %made = select <4 x i1> %is, {_WORD} %below, {_WORD} %above
  %r = call {_WORD} @llvm.arm.mve.vshl.scalar.v4i32({_WORD} %made, i32 %ne, i32 0,
    i32 1, i32 0)
  ret {_WORD} %r
}}"""

EIGHTS = "".join((
    f"\ndeclare {_KIND} @{_HIGH}({_KIND}, {_KIND})",
    f"\ndeclare {_KIND} @llvm.arm.mve.vrhadd.v8i16({_KIND}, {_KIND}, i32)",
    f"\ndeclare <4 x i32> @{_PRODUCT}({_KIND}, {_KIND}, i32, i32)",
    f"\ndeclare {_KIND} @{_SHIFT}({_KIND}, i32, i32, i32, i32)",
    _function("crt_all8", "n", _splat("%n", "r")),
    _function("crt_plus8", "xy", f"  %r = add {_KIND} %x, %y"),
    _function("crt_minus8", "xy", f"  %r = sub {_KIND} %x, %y"),
    _function(
        "crt_fourfold8",
        "xy",
        f"  %f = mul {_KIND} %y, {_all(4)}\n  %r = add {_KIND} %x, %f",
    ),
    _function("crt_held8", "xy", _called("llvm.sadd.sat.v8i16", _TWO)),
    _function(
        "crt_high_all8",
        "xn",
        _splat("%n", "s") + "\n" + _called(_HIGH, f"{_KIND} %x, {_KIND} %s"),
    ),
    _function(
        "crt_middle8", "xy", _called("llvm.arm.mve.vrhadd.v8i16", f"{_TWO}, i32 0")
    ),
    _function(
        "crt_fourth8",
        "x",
        f"  %t = add {_KIND} %x, {_all(2)}\n  %r = ashr {_KIND} %t, {_all(2)}",
    ),
    _function(
        "crt_below8",
        "x",
        f"  %t = sub {_KIND} zeroinitializer, %x\n"
        + _called("llvm.smin.v8i16", f"{_KIND} %x, {_KIND} %t"),
    ),
    _function(
        "crt_near8",
        "xn",
        "  %b = lshr i32 8191, %n\n"
        + _splat("%b", "s")
        + f"\n  %l = and {_KIND} %x, %s\n  %u = call {_KIND} @{_SHIFT}"
        + f"({_KIND} %l, i32 %n, i32 0, i32 0, i32 0)\n"
        + f"  %r = add {_KIND} %u, {_all(-4096)}",
    ),
    _function(
        "crt_times_where8",
        "xynm",
        f"""{_splat("%n", "s")}
{_splat("%m", "p")}
  %b = and {_KIND} %y, %s
  %c = icmp eq {_KIND} %b, zeroinitializer
  %h = call {_KIND} @{_HIGH}({_KIND} %x, {_KIND} %p)
  %r = select <8 x i1> %c, {_KIND} %h, {_KIND} %x""",
    ),
    _function(
        "crt_by_sign8",
        "xyz",
        f"  %c = icmp slt {_KIND} %x, zeroinitializer\n"
        f"  %r = select <8 x i1> %c, {_KIND} %z, {_KIND} %y",
    ),
    _function(
        "crt_above8",
        "xyn",
        f"{_splat('%n', 's')}\n  %c = icmp slt {_KIND} %y, %s\n"
        f"  %r = select <8 x i1> %c, {_KIND} zeroinitializer, {_KIND} %x",
    ),
    _function(
        "crt_at_zero8",
        "xyn",
        f"{_splat('%n', 's')}\n  %c = icmp eq {_KIND} %y, zeroinitializer\n"
        f"  %r = select <8 x i1> %c, {_KIND} %s, {_KIND} %x",
    ),
    *(
        _function(
            name,
            "xy",
            _called(_PRODUCT, f"{_TWO}, i32 0, i32 {odd}", "<4 x i32>"),
            "<4 x i32>",
        )
        for odd, name in enumerate(("crt_products_even8", "crt_products_odd8"))
    ),
    _function(
        "crt_away_all4",
        "vn",
        """  %b = ashr <4 x i32> %v, splat (i32 31)
  %t = add <4 x i32> %v, %b
  %d = sub i32 0, %n
  %r = call <4 x i32> @llvm.arm.mve.vshl.scalar.v4i32(<4 x i32> %t, i32 %d, i32 0,
    i32 1, i32 0)""",
        "<4 x i32>",
    ),
    _BETWEEN,
))  # fmt: skip
