"""What an LLVM module for Cortex-M55 declares of kernels/base/floats.py, and every one
of float16 in reals.py."""

from __future__ import annotations

_WIDENED = """
define internal <4 x float> @{}(<4 x i32> %h) alwaysinline nounwind {{
  %b = bitcast <4 x i32> %h to <8 x half>
  %r = call <4 x float> @llvm.arm.mve.vcvt.widen(<8 x half> %b, i32 {})
  ret <4 x float> %r
}}"""
_ALL = """\
  %s1 = insertelement <4 x float> poison, float %x, i32 0
  %s = shufflevector <4 x float> %s1, <4 x float> poison, <4 x i32> zeroinitializer"""
FLOATS = f"""
define internal <4 x float> @crt_of_words4(<4 x i32> %v) alwaysinline nounwind {{
  %r = sitofp <4 x i32> %v to <4 x float>
  ret <4 x float> %r
}}
define internal <4 x i32> @crt_reach4(<4 x i32> %m, <4 x float> %v)
    alwaysinline nounwind {{
  %w = bitcast <4 x float> %v to <4 x i32>
  %b = and <4 x i32> %w, splat (i32 2147483647)
  %r = call <4 x i32> @llvm.smax.v4i32(<4 x i32> %m, <4 x i32> %b)
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_above4(<4 x i32> %m, <4 x float> %v)
    alwaysinline nounwind {{
  %w = bitcast <4 x float> %v to <4 x i32>
  %b = or <4 x i32> %w, zeroinitializer
  %r = call <4 x i32> @llvm.smax.v4i32(<4 x i32> %m, <4 x i32> %b)
  ret <4 x i32> %r
}}
define internal <4 x i32> @crt_below4(<4 x i32> %m, <4 x float> %v)
    alwaysinline nounwind {{
  %w = bitcast <4 x float> %v to <4 x i32>
  %b = xor <4 x i32> %w, splat (i32 -2147483648)
  %r = call <4 x i32> @llvm.smax.v4i32(<4 x i32> %m, <4 x i32> %b)
  ret <4 x i32> %r
}}
declare i32 @llvm.vector.reduce.smax.v4i32(<4 x i32>)
define internal i32 @crt_greatest4(i32 %n, <4 x i32> %m) alwaysinline nounwind {{
  %a = call i32 @llvm.vector.reduce.smax.v4i32(<4 x i32> %m)
  %r = call i32 @llvm.smax.i32(i32 %n, i32 %a)
  ret i32 %r
}}
define internal <4 x float> @crt_add_reals4(<4 x float> %v, <4 x float> %w)
    alwaysinline nounwind {{
  %r = fadd <4 x float> %v, %w
  ret <4 x float> %r
}}
define internal <4 x float> @crt_sub_reals4(<4 x float> %v, <4 x float> %w)
    alwaysinline nounwind {{
  %r = fsub <4 x float> %v, %w
  ret <4 x float> %r
}}
define internal <4 x float> @crt_mul_reals4(<4 x float> %v, <4 x float> %w)
    alwaysinline nounwind {{
  %r = fmul <4 x float> %v, %w
  ret <4 x float> %r
}}
define internal <4 x float> @crt_all_reals4(float %x) alwaysinline nounwind {{
{_ALL}
  ret <4 x float> %s
}}
define internal <4 x float> @crt_add_product4(<4 x float> %v, float %x, <4 x float> %w)
    alwaysinline nounwind {{
{_ALL}
  %p = fmul <4 x float> %s, %w
  %r = fadd <4 x float> %v, %p
  ret <4 x float> %r
}}
define internal <4 x float> @crt_add_products4(<4 x float> %v, <4 x float> %x,
    <4 x float> %w) alwaysinline nounwind {{
  %p = fmul <4 x float> %x, %w
  %r = fadd <4 x float> %v, %p
  ret <4 x float> %r
}}
define internal <4 x float> @crt_at_least4(<4 x float> %v, float %x)
    alwaysinline nounwind {{
{_ALL}
  %c = fcmp olt <4 x float> %v, %s
  %r = select <4 x i1> %c, <4 x float> %s, <4 x float> %v
  ret <4 x float> %r
}}
define internal <4 x float> @crt_at_most4(<4 x float> %v, float %x)
    alwaysinline nounwind {{
{_ALL}
  %c = fcmp olt <4 x float> %s, %v
  %r = select <4 x i1> %c, <4 x float> %s, <4 x float> %v
  ret <4 x float> %r
}}
declare <4 x float> @llvm.arm.mve.vcvt.widen(<8 x half>, i32)\
{_WIDENED.format("crt_from_halves4", 0)}\
{_WIDENED.format("crt_from_high_halves4", 1)}"""

# float16: kernels/base/reals.py
_FPU_HALF = """
define internal float @crt_from_half(i32 %h) alwaysinline nounwind {
  %t = trunc i32 %h to i16
  %b = bitcast i16 %t to half
  %r = fpext half %b to float
  ret float %r
}"""
# without an instruction: a branch, because operations on floats may be calls
_HALF = """
define internal float @crt_from_half(i32 %h) alwaysinline nounwind {
  %top = shl i32 %h, 17
  %bits = lshr i32 %top, 4
  %over = sub i32 %bits, 8388608
  %normal = icmp ult i32 %over, 251658240
  br i1 %normal, label %rebased, label %rare
rebased:
  %moved = add i32 %bits, 939524096
  br label %end
rare:
  %subnormal = icmp slt i32 %over, 0
  br i1 %subnormal, label %small, label %large
small:
  %l = add i32 %bits, 947912704
  %lifted = bitcast i32 %l to float
  %real = fsub float %lifted, 0x3F10000000000000
  %least = bitcast float %real to i32
  br label %end
large:
  %most = add i32 %bits, 1879048192
  br label %end
end:
  %size = phi i32 [%moved, %rebased], [%least, %small], [%most, %large]
  %n = lshr i32 %h, 15
  %sign = shl i32 %n, 31
  %all = or i32 %size, %sign
  %r = bitcast i32 %all to float
  ret float %r
}"""
FROM_HIGH_HALF = """
define internal float @crt_from_high_half(i32 %h) alwaysinline nounwind {
  %w = lshr i32 %h, 16
  %r = call float @crt_from_half(i32 %w)
  ret float %r
}"""


def from_half(features: frozenset[str]) -> str:
    """The definition of crt_from_half for a target with these features."""
    return _FPU_HALF if features & {"dsp", "mve"} else _HALF
