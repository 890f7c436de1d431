"""The declarations of every LLVM module with kernels, and the spelling of numbers in
it."""

from __future__ import annotations

import struct

from pybuild.dtype import DType
from pybuild.emit.kernels.llvm_eights import EIGHTS
from pybuild.emit.kernels.llvm_floats import FLOATS, FROM_HIGH_HALF, from_half

INTEGER = {
    "+": "add nsw", "-": "sub nsw", "*": "mul nsw", "/": "sdiv", "%": "srem",
    "&": "and", "|": "or", "^": "xor", "<<": "shl nsw", ">>": "ashr",
}  # fmt: skip
# C promotes the small ones, so they never wrap
UNSIGNED = {
    "+": "add", "-": "sub", "*": "mul", "/": "udiv", "%": "urem",
    "&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "lshr",
}  # fmt: skip
FLOAT = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
SIGNED = {"<": "slt", "<=": "sle", "==": "eq", "!=": "ne"}
BELOW = {"<": "ult", "<=": "ule", "==": "eq", "!=": "ne"}
ORDERED = {"<": "olt", "<=": "ole", "==": "oeq", "!=": "une"}


def literal(value: int | float, dtype: DType) -> str:
    """The LLVM spelling of a number."""
    if dtype.is_float:
        # LLVM writes a float as the bits of the double of the same value
        rounded = value
        if dtype is DType.FLOAT32:
            rounded = struct.unpack("<f", struct.pack("<f", value))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    return str(int(value))


_INSTRUCTIONS = (
    ("dsp", "llvm.arm.ssat", 2),
    ("dsp", "llvm.arm.usat", 2),
    ("dsp", "llvm.arm.smlad", 3),
    ("dsp", "llvm.arm.smlabb", 3),
    ("dsp", "llvm.arm.smlatt", 3),
    ("dsp", "llvm.arm.sxtb16", 1),
    ("dsp", "llvm.arm.sadd16", 2),
    ("dsp", "llvm.arm.ssub16", 2),
    ("dsp", "llvm.arm.ssub8", 2),
    ("dsp", "llvm.arm.qsub8", 2),
    ("dsp", "llvm.arm.sel", 2),
    ("dsp", "llvm.fshr.i32", 3),
)
# bytes of halves, each stored in a place of its own
SCATTER = "llvm.arm.mve.vstr.scatter.offset.p0.v8i16.v8i16"
_LONG = "declare i64 @llvm.arm.smlald(i32, i32, i64)"


def _chosen(name: str, difference: str, given: str) -> str:
    """Two instructions that meet in the flags."""
    return f"""
define internal i32 @{name}(i32 %x, i32 %w) alwaysinline nounwind {{
  %flags = call i32 @llvm.arm.{difference}(i32 %x, i32 %w)
  %chosen = call i32 @llvm.arm.sel({given})
  ret i32 %chosen
}}"""


_CHOSEN = "\n".join(
    _chosen(f"crt_{which}_{lanes}", difference, given)
    for lanes, difference in (("bytes", "ssub8"), ("halves", "ssub16"))
    for which, given in (("max", "i32 %x, i32 %w"), ("min", "i32 %w, i32 %x"))
)

# kernels/base/vector_rounds.py
_ROUNDED = "call <4 x i32> @llvm.arm.mve.vshl.vector.v4i32.v4i32(<4 x i32> {}, i32 {})"
_ROUNDS = f"""
define internal <4 x i32> @crt_lift4(<4 x i32> %v, <4 x i32> %n)
    alwaysinline nounwind {{
  %r = {_ROUNDED.format("%v, <4 x i32> %n", "1, i32 0, i32 0")}
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_twice4(<4 x i32> %v, <4 x i32> %m, <4 x i32> %n)
    alwaysinline nounwind {{
  %h = call <4 x i32> @llvm.arm.mve.vqrdmulh.v4i32(<4 x i32> %v, <4 x i32> %m)
  %s = and <4 x i32> %h, %n
  %b = ashr <4 x i32> %s, <i32 31, i32 31, i32 31, i32 31>
  %t = add <4 x i32> %h, %b
  %r = {_ROUNDED.format("%t, <4 x i32> %n", "0, i32 1, i32 0")}
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_twice_down4(<4 x i32> %v, <4 x i32> %m, <4 x i32> %n)
    alwaysinline nounwind {{
  %h = call <4 x i32> @llvm.arm.mve.vqrdmulh.v4i32(<4 x i32> %v, <4 x i32> %m)
  %b = ashr <4 x i32> %h, <i32 31, i32 31, i32 31, i32 31>
  %t = add <4 x i32> %h, %b
  %r = {_ROUNDED.format("%t, <4 x i32> %n", "0, i32 1, i32 0")}
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_once4(<4 x i32> %v, <4 x i32> %m, <4 x i32> %n)
    alwaysinline nounwind {{
  %h = call <4 x i32> @llvm.arm.mve.vmulh.v4i32(<4 x i32> %v, <4 x i32> %m, i32 0)
  %r = {_ROUNDED.format("%h, <4 x i32> %n", "0, i32 1, i32 0")}
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_away4(<4 x i32> %v, <4 x i32> %m, <4 x i32> %n)
    alwaysinline nounwind {{
  %h = call <4 x i32> @llvm.arm.mve.vmulh.v4i32(<4 x i32> %v, <4 x i32> %m, i32 0)
  %l = mul <4 x i32> %v, %m
  %z = icmp eq <4 x i32> %l, zeroinitializer
  %b = icmp slt <4 x i32> %h, zeroinitializer
  %c = and <4 x i1> %z, %b
  %d = sext <4 x i1> %c to <4 x i32>
  %t = add <4 x i32> %h, %d
  %r = {_ROUNDED.format("%t, <4 x i32> %n", "0, i32 1, i32 0")}
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_scaled4(<4 x i32> %v, <4 x i32> %m)
    alwaysinline nounwind {{
  %x = sitofp <4 x i32> %v to <4 x float>
  %f = bitcast <4 x i32> %m to <4 x float>
  %p = fmul <4 x float> %x, %f
  %r = call <4 x i32> @llvm.arm.mve.vcvtn.v4i32.v4f32(i32 0, <4 x float> %p)
  ret <4 x i32> %r
}}"""

# kernels/base/vector_packs.py
_SHIFTED = (
    "call <4 x i32> @llvm.arm.mve.vshl.scalar.v4i32(<4 x i32> {}, i32 0, i32 1, i32 0)"
)

# %h, 1 less where it is below zero: the high half of its double is added
_BELOW = "call <4 x i32> @llvm.arm.mve.vqdmlah.v4i32(<4 x i32> %h, <4 x i32> %h, i32 1)"


def _all_of(n: str, kind: str, name: str) -> str:
    """Lines that have a number in each lane."""
    one = f"  %{name}1 = insertelement {kind} poison, {n}, i32 0"
    zeros = f"<{kind[1]} x i32> zeroinitializer"
    all_of = f"  %{name} = shufflevector {kind} %{name}1, {kind} poison, {zeros}"
    return f"{one}\n{all_of}"


def _packed(result: str, given: str, mangled: str) -> str:
    """Lines that pack %a and %b, in turns, into %r."""
    call = f"call {result} @llvm.arm.mve.vqmovn.{mangled}({result} {{}}, {given} {{}}, "
    low = call.format("poison", "%a") + "i32 0, i32 0, i32 0)"
    return f"  %l = {low}\n  %r = " + call.format("%l", "%b") + "i32 0, i32 0, i32 1)"


_PACKS = f"""
define internal <8 x i16> @crt_pack8(<4 x i32> %a, <4 x i32> %b)
    alwaysinline nounwind {{
{_packed("<8 x i16>", "<4 x i32>", "v8i16.v4i32")}
  ret <8 x i16> %r
}}
define internal <16 x i8> @crt_pack16(<8 x i16> %a, <8 x i16> %b)
    alwaysinline nounwind {{
{_packed("<16 x i8>", "<8 x i16>", "v16i8.v8i16")}
  ret <16 x i8> %r
}}
define internal <4 x i32> @crt_twos4(i32 %m, i32 %n) alwaysinline nounwind {{
  %o = insertelement <4 x i32> poison, i32 %m, i32 0
  %r = insertelement <4 x i32> %o, i32 %n, i32 2
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_odd4(<4 x i32> %v, i32 %m, i32 %n)
    alwaysinline nounwind {{
  %o = insertelement <4 x i32> %v, i32 %m, i32 1
  %r = insertelement <4 x i32> %o, i32 %n, i32 3
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_scale_kept4(<4 x i32> %v, i32 %n)
    alwaysinline nounwind {{
  %m = call <4 x i32> @llvm.arm.mve.vmulh.v4i32(<4 x i32> splat (i32 65536),
    <4 x i32> splat (i32 16777216), i32 0)
  %p = mul <4 x i32> %v, %m
{_all_of("i32 %n", "<4 x i32>", "s")}
  %r = add <4 x i32> %p, %s
  ret <4 x i32> %r
}}
define internal <8 x i16> @crt_byte8(<8 x i16> %x) alwaysinline nounwind {{
  %b = bitcast <8 x i16> %x to <16 x i8>
  %n = call <16 x i8> @llvm.arm.mve.vqmovn.v16i8.v8i16(<16 x i8> %b, <8 x i16> %x,
    i32 0, i32 0, i32 0)
  %r = bitcast <16 x i8> %n to <8 x i16>
  ret <8 x i16> %r
}}
define internal <8 x i16> @crt_more8(<8 x i16> %x, i32 %n) alwaysinline nounwind {{
  %t = trunc i32 %n to i16
{_all_of("i16 %t", "<8 x i16>", "s")}
  %r = call <8 x i16> @llvm.sadd.sat.v8i16(<8 x i16> %x, <8 x i16> %s)
  ret <8 x i16> %r
}}
define internal <4 x i32> @crt_twice_all4(<4 x i32> %v, i32 %m, i32 %n)
    alwaysinline nounwind {{
{_all_of("i32 %m", "<4 x i32>", "s")}
  %h = call <4 x i32> @llvm.arm.mve.vqrdmulh.v4i32(<4 x i32> %v, <4 x i32> %s)
  %t = {_BELOW}
  %r = {_SHIFTED.format("%t, i32 %n")}
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_twice_up_all4(<4 x i32> %v, i32 %m, i32 %n)
    alwaysinline nounwind {{
{_all_of("i32 %m", "<4 x i32>", "s")}
  %h = call <4 x i32> @llvm.arm.mve.vqrdmulh.v4i32(<4 x i32> %v, <4 x i32> %s)
  %r = {_SHIFTED.format("%h, i32 %n")}
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_once_all4(<4 x i32> %v, i32 %m, i32 %n)
    alwaysinline nounwind {{
{_all_of("i32 %m", "<4 x i32>", "s")}
  %h = call <4 x i32> @llvm.arm.mve.vmulh.v4i32(<4 x i32> %v, <4 x i32> %s, i32 0)
  %r = {_SHIFTED.format("%h, i32 %n")}
  ret <4 x i32> %r
}}"""

# kernels/base/reals.py
_EVEN = """
declare float @llvm.arm.vcvtr.f32(float)
define internal i32 @crt_whole_even(float %x) alwaysinline nounwind {
  %w = call float @llvm.arm.vcvtr.f32(float %x)
  %r = bitcast float %w to i32
  ret i32 %r
}"""
_HELD = f"""\
{_all_of("i32 %l", "<4 x i32>", "low")}
{_all_of("i32 %h", "<4 x i32>", "high")}
{_all_of("i32 %n", "<4 x i32>", "more")}
  %a = call <4 x i32> @llvm.smax.v4i32(<4 x i32> %w, <4 x i32> %low)
  %b = call <4 x i32> @llvm.smin.v4i32(<4 x i32> %a, <4 x i32> %high)
  %r = add <4 x i32> %b, %more"""
_REALS = f"""
define internal <4 x float> @crt_quotient4(<4 x float> %v, float %x)
    alwaysinline nounwind {{
{_all_of("float %x", "<4 x float>", "s")}
  %r = fdiv <4 x float> %v, %s
  ret <4 x float> %r
}}
define internal <4 x i32> @crt_steps_away4(<4 x float> %v, i32 %l, i32 %h, i32 %n)
    alwaysinline nounwind {{
  %w = call <4 x i32> @llvm.arm.mve.vcvta.v4i32.v4f32(i32 0, <4 x float> %v)
{_HELD}
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_steps_even4(<4 x float> %v, i32 %l, i32 %h, i32 %n)
    alwaysinline nounwind {{
  %w = call <4 x i32> @llvm.arm.mve.vcvtn.v4i32.v4f32(i32 0, <4 x float> %v)
{_HELD}
  ret <4 x i32> %r
}}
define internal <4 x float> @crt_real4(<4 x i32> %v, float %x) alwaysinline nounwind {{
{_all_of("float %x", "<4 x float>", "s")}
  %f = sitofp <4 x i32> %v to <4 x float>
  %r = fmul <4 x float> %f, %s
  ret <4 x float> %r
}}"""

# halves of a sum of 64 bits; kernels/base/vectors.py
_LONG_DOT8 = """
declare {i32, i32} @llvm.arm.mve.vmlldava.v8i16
(i32, i32, i32, i32, i32, <8 x i16>, <8 x i16>)
define internal i64 @crt_long_dot8(i64 %acc, <8 x i16> %x, <8 x i16> %w)
    alwaysinline nounwind {
  %low = trunc i64 %acc to i32
  %up = lshr i64 %acc, 32
  %high = trunc i64 %up to i32
  %both = call {i32, i32} @llvm.arm.mve.vmlldava.v8i16(i32 0, i32 0, i32 0,
    i32 %low, i32 %high, <8 x i16> %x, <8 x i16> %w)
  %l = extractvalue {i32, i32} %both, 0
  %h = extractvalue {i32, i32} %both, 1
  %wide = zext i32 %h to i64
  %upper = shl i64 %wide, 32
  %lower = zext i32 %l to i64
  %r = or i64 %upper, %lower
  ret i64 %r
}"""

_FIRST16 = """
declare <16 x i1> @llvm.arm.mve.vctp8(i32)
declare <16 x i8> @llvm.masked.load.v16i8.p0(ptr, i32, <16 x i1>, <16 x i8>)
define internal <16 x i8> @crt_first16(ptr %x, i32 %n) alwaysinline nounwind {
  %m = call <16 x i1> @llvm.arm.mve.vctp8(i32 %n)
  %r = call <16 x i8> @llvm.masked.load.v16i8.p0(ptr %x, i32 1, <16 x i1> %m,
    <16 x i8> zeroinitializer)
  ret <16 x i8> %r
}"""

_TABLE16 = """
declare <16 x i8> @llvm.arm.mve.vldr.gather.offset.v16i8.p0.v16i8(ptr, <16 x i8>, i32,
  i32, i32)
define internal <16 x i8> @crt_table16(ptr %t, <16 x i8> %x) alwaysinline nounwind {
  %u = xor <16 x i8> %x, splat (i8 128)
  %r = call <16 x i8> @llvm.arm.mve.vldr.gather.offset.v16i8.p0.v16i8(ptr %t,
    <16 x i8> %u, i32 8, i32 0, i32 1)
  ret <16 x i8> %r
}"""

_VECTOR_INSTRUCTIONS = (
    "declare i32 @llvm.arm.mve.vmldava.v16i8(i32, i32, i32, i32, <16 x i8>, <16 x i8>)",
    "declare i32 @llvm.arm.mve.vmldava.v8i16(i32, i32, i32, i32, <8 x i16>, <8 x i16>)",
    "declare <4 x i32> @llvm.arm.mve.vmulh.v4i32(<4 x i32>, <4 x i32>, i32)",
    "declare <4 x i32> @llvm.arm.mve.vldr.gather.offset.v4i32.p0.v4i32"
    "(ptr, <4 x i32>, i32, i32, i32)",
    "declare <8 x i16> @llvm.arm.mve.vldr.gather.offset.v8i16.p0.v8i16"
    "(ptr, <8 x i16>, i32, i32, i32)",
    "declare void @llvm.arm.mve.vst2q.p0.v16i8(ptr, <16 x i8>, <16 x i8>, i32)",
    "declare void @llvm.arm.mve.vst4q.p0.v16i8"
    "(ptr, <16 x i8>, <16 x i8>, <16 x i8>, <16 x i8>, i32)",
    "declare <4 x i32> @llvm.arm.mve.vqrdmulh.v4i32(<4 x i32>, <4 x i32>)",
    "declare <4 x i32> @llvm.arm.mve.vqdmlah.v4i32(<4 x i32>, <4 x i32>, i32)",
    "declare <4 x i32> @llvm.arm.mve.vshl.vector.v4i32.v4i32"
    "(<4 x i32>, <4 x i32>, i32, i32, i32)",
    "declare <4 x i32> @llvm.arm.mve.vcvtn.v4i32.v4f32(i32, <4 x float>)",
    "declare <4 x i32> @llvm.arm.mve.vcvta.v4i32.v4f32(i32, <4 x float>)",
    "declare <4 x i32> @llvm.arm.mve.vshl.scalar.v4i32(<4 x i32>, i32, i32, i32, i32)",
    "declare <8 x i16> @llvm.arm.mve.vqmovn.v8i16.v4i32"
    "(<8 x i16>, <4 x i32>, i32, i32, i32)",
    "declare <16 x i8> @llvm.arm.mve.vqmovn.v16i8.v8i16"
    "(<16 x i8>, <8 x i16>, i32, i32, i32)",
    "declare <8 x i16> @llvm.arm.mve.vshrn.v8i16.v4i32"
    "(<8 x i16>, <4 x i32>, i32, i32, i32, i32, i32, i32)",
    "declare <8 x i16> @llvm.sadd.sat.v8i16(<8 x i16>, <8 x i16>)",
    f"declare void @{SCATTER}(ptr, <8 x i16>, <8 x i16>, i32, i32)",
    _LONG_DOT8,
    _FIRST16,
    _TABLE16,
    _ROUNDS,
    _PACKS,
    _REALS,
    FLOATS,
    EIGHTS,
)


def declarations(features: frozenset[str] = frozenset()) -> str:
    """The declarations of every module with kernels."""
    kinds = [("i32", "i32"), ("i64", "i64")]
    kinds += [("v4i32", "<4 x i32>"), ("v8i16", "<8 x i16>"), ("v16i8", "<16 x i8>")]
    lines = [
        f"declare {k} @llvm.{op}.{short}({k}, {k})"
        for op in ("smin", "smax")
        for short, k in kinds
    ]
    lines.append("declare i32 @llvm.fptosi.sat.i32.f32(float)")
    for lanes in (8, 16):
        given = f"<{lanes} x i32>"
        lines.append(f"declare i32 @llvm.vector.reduce.add.v{lanes}i32({given})")
    lines += [from_half(features), FROM_HIGH_HALF]
    if "mve" in features:
        lines += _VECTOR_INSTRUCTIONS
    for feature, name, count in _INSTRUCTIONS:
        if feature in features:
            lines.append(f"declare i32 @{name}({', '.join(['i32'] * count)})")
    if "dsp" in features:
        lines += [_LONG, _CHOSEN, _EVEN]
    # what kernels read and what they write never overlap, unless in place
    lines += ["!0 = !{}", "!1 = distinct !{!1}", "!2 = distinct !{!2, !1}"]
    lines += ["!3 = distinct !{!3, !1}", "!4 = !{!2}", "!5 = !{!3}"]
    # in place, each turn of an innermost loop touches only its own elements
    lines += ["!6 = distinct !{}", "!7 = distinct !{!7, !8}"]
    lines += ['!8 = !{!"llvm.loop.parallel_accesses", !6}']
    # LLVM 22.1 loses the last turn of a loop that it knows to fit one vector of MVE:
    # llvm_order.py's is_short; those and rolled ones stay as they are
    rolled = "!10, !11" if "mve" in features else "!10"
    lines += [f"!9 = distinct !{{!9, {rolled}}}"]
    lines += ['!10 = !{!"llvm.loop.unroll.disable"}']
    lines += ['!11 = !{!"llvm.loop.vectorize.enable", i1 false}']
    lines += ["!12 = distinct !{!12, !11}", ""]
    return "\n".join(lines)


def width(dtype: DType) -> int:
    """Bits of a value."""
    return 1 if dtype is DType.BOOL else dtype.bytes * 8
