"""Machine instructions used by kernels: their scalar meaning and their names. Their C
is in crt/intrin.h, which falls back to the meaning where there is no instruction.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT32,
    Expr,
    Intrin,
    Var,
    cast,
    const,
    i32,
    i64,
    maximum,
    minimum,
)

_X, _W, _ACC = (Var(name, INT32) for name in ("x", "w", "acc"))


def low_half(value: Expr) -> Expr:
    return i32(cast(value, DType.INT16))


def two_halves(high: Expr, low: Expr) -> Expr:
    """Packs two int16 into one int32."""
    return high * 65536 + (low & 0xFFFF)


def _byte(value: Expr, bits: int) -> Expr:
    return i32(cast(value >> bits, INT8))


# acc + x.low * w.low + x.high * w.high
DOT2 = Intrin(
    "crt_dot2",
    (_X, _W, _ACC),
    _ACC + low_half(_X) * low_half(_W) + (_X >> 16) * (_W >> 16),
    c="crt_dot2({0}, {1}, {2})",
    feature="dsp",
    llvm="llvm.arm.smlad",
    ordered=True,
)
_LONG = Var("acc", DType.INT64)
# the same, of a sum of 64 bits
LONG_DOT2 = Intrin(
    "crt_long_dot2",
    (_X, _W, _LONG),
    _LONG + i64(low_half(_X) * low_half(_W)) + i64((_X >> 16) * (_W >> 16)),
    c="crt_long_dot2({0}, {1}, {2})",
    feature="dsp",
    llvm="llvm.arm.smlald",
)
# acc + x * w, of a sum of 64 bits
LONG_MLA = Intrin(
    "crt_long_mla",
    (_X, _W, _LONG),
    _LONG + i64(_X) * i64(_W),
    c="crt_long_mla({0}, {1}, {2})",
)
# acc + x.low * w.low
MLA_LOW = Intrin(
    "crt_mla_low",
    (_X, _W, _ACC),
    _ACC + low_half(_X) * low_half(_W),
    c="crt_mla_low({0}, {1}, {2})",
    feature="dsp",
    llvm="llvm.arm.smlabb",
    ordered=True,
)
# acc + x.high * w.high
MLA_HIGH = Intrin(
    "crt_mla_high",
    (_X, _W, _ACC),
    _ACC + (_X >> 16) * (_W >> 16),
    c="crt_mla_high({0}, {1}, {2})",
    feature="dsp",
    llvm="llvm.arm.smlatt",
    ordered=True,
)
# acc + x.low * w.high
MLA_LOW_HIGH = Intrin(
    "crt_mla_low_high",
    (_X, _W, _ACC),
    _ACC + low_half(_X) * (_W >> 16),
    c="crt_mla_low_high({0}, {1}, {2})",
    feature="dsp",
    llvm="llvm.arm.smlabt",
    ordered=True,
)
# acc + x.high * w.low
MLA_HIGH_LOW = Intrin(
    "crt_mla_high_low",
    (_X, _W, _ACC),
    _ACC + (_X >> 16) * low_half(_W),
    c="crt_mla_high_low({0}, {1}, {2})",
    feature="dsp",
    llvm="llvm.arm.smlatb",
    ordered=True,
)
# x.low, w.low
LOW_HALVES = Intrin(
    "crt_low_halves",
    (_X, _W),
    two_halves(low_half(_W), _X),
    c="crt_low_halves({0}, {1})",
)
# x.high, w.high
HIGH_HALVES = Intrin(
    "crt_high_halves",
    (_X, _W),
    (_W & -65536) + ((_X >> 16) & 0xFFFF),
    c="crt_high_halves({0}, {1})",
)
# sums and differences of both halves, which must fit int16
ADD2 = Intrin(
    "crt_add2",
    (_X, _W),
    two_halves((_X >> 16) + (_W >> 16), low_half(_X) + low_half(_W)),
    c="crt_add2({0}, {1})",
    feature="dsp",
    llvm="llvm.arm.sadd16",
)
SUB2 = Intrin(
    "crt_sub2",
    (_X, _W),
    two_halves((_X >> 16) - (_W >> 16), low_half(_X) - low_half(_W)),
    c="crt_sub2({0}, {1})",
    feature="dsp",
    llvm="llvm.arm.ssub16",
)
# bytes 0 and 2 as two int16
EVEN_BYTES = Intrin(
    "crt_even_bytes",
    (_X,),
    two_halves(_byte(_X, 16), _byte(_X, 0)),
    c="crt_even_bytes({0})",
    feature="dsp",
    llvm="llvm.arm.sxtb16",
    ordered=True,
)
# bytes 1 and 3 as two int16
ODD_BYTES = Intrin(
    "crt_odd_bytes",
    (_X,),
    two_halves(_byte(_X, 24), _byte(_X, 8)),
    c="crt_odd_bytes({0})",
    feature="dsp",
    llvm="llvm.arm.sxtb16",
    rotate=8,
    ordered=True,
)
# the same added to the halves of x, which must fit int16
ADD_EVEN = Intrin(
    "crt_add_even_bytes",
    (_X, _W),
    two_halves((_X >> 16) + _byte(_W, 16), low_half(_X) + _byte(_W, 0)),
    c="crt_add_even_bytes({0}, {1})",
    feature="dsp",
    llvm="llvm.arm.sxtab16",
)
ADD_ODD = Intrin(
    "crt_add_odd_bytes",
    (_X, _W),
    two_halves((_X >> 16) + _byte(_W, 24), low_half(_X) + _byte(_W, 8)),
    c="crt_add_odd_bytes({0}, {1})",
    feature="dsp",
    llvm="llvm.arm.sxtab16",
    rotate=8,
)
# the high half of the product
MULHI = Intrin(
    "crt_mulhi",
    (_X, _W),
    i32((i64(_X) * i64(_W)) >> const(32, DType.INT64)),
    c="crt_mulhi({0}, {1})",
)
# acc + the high half of the product
MULHI_ADD = Intrin(
    "crt_mulhi_add",
    (_X, _W, _ACC),
    _ACC + i32((i64(_X) * i64(_W)) >> const(32, DType.INT64)),
    c="crt_mulhi_add({0}, {1}, {2})",
    feature="dsp",
    ordered=True,
)
# the same, rounded to nearest
MULHI_ADD_ROUND = Intrin(
    "crt_mulhi_add_round",
    (_X, _W, _ACC),
    _ACC + i32((i64(_X) * i64(_W) + (1 << 31)) >> const(32, DType.INT64)),
    c="crt_mulhi_add_round({0}, {1}, {2})",
    feature="dsp",
    ordered=True,
)


def _greater(bits: int) -> Expr:
    return maximum(_byte(_X, bits), _byte(_W, bits))


# the greater of each two bytes
MAX_BYTES = Intrin(
    "crt_max_bytes",
    (_X, _W),
    _greater(24) * (1 << 24)
    + (_greater(16) & 0xFF) * (1 << 16)
    + (_greater(8) & 0xFF) * (1 << 8)
    + (_greater(0) & 0xFF),
    c="crt_max_bytes({0}, {1})",
    feature="dsp",
    llvm="crt_max_bytes",
)


def _held(bits: int) -> Expr:
    return minimum(maximum(_byte(_X, bits) - _byte(_W, bits), -128), 127)


# differences of bytes, held within int8
HELD_SUB_BYTES = Intrin(
    "crt_held_sub_bytes",
    (_X, _W),
    _held(24) * (1 << 24)
    + (_held(16) & 0xFF) * (1 << 16)
    + (_held(8) & 0xFF) * (1 << 8)
    + (_held(0) & 0xFF),
    c="crt_held_sub_bytes({0}, {1})",
    feature="dsp",
    llvm="llvm.arm.qsub8",
)
# held within int8
SATURATE8 = Intrin(
    "crt_saturate8",
    (_X,),
    minimum(maximum(_X, -128), 127),
    c="crt_saturate8({0})",
    feature="dsp",
    llvm="llvm.arm.ssat",
    trail=(8,),
)
# held within int16
SATURATE16 = Intrin(
    "crt_saturate16",
    (_X,),
    minimum(maximum(_X, -32768), 32767),
    c="crt_saturate16({0})",
    feature="dsp",
    llvm="llvm.arm.ssat",
    trail=(16,),
)
# x; nothing after it is read before it: compilers read far more values ahead than
# RISC-V has registers
IN_ORDER = Intrin(
    "crt_in_order",
    (_X,),
    _X,
    c="crt_in_order({0})",
    feature="order",
    ordered=True,
)
# x; of a constant factor without a sign LLVM makes four instructions of a high product,
# so that it must not see which it is
KEPT = Intrin("crt_kept", (_X,), _X, c="{0}", feature="dsp", ordered=True)
_REAL = Var("x", FLOAT32)
FLOAT_IN_ORDER = Intrin(
    "crt_float_in_order", (_REAL,), _REAL, c="crt_float_in_order({0})"
)
