"""What an LLVM module for Cortex-M55 declares of kernels/base/floats.py."""

from __future__ import annotations

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
}}"""
