"""Reads and writes elements of every type in kernels.

In memory a bool is a byte, float16 and bfloat16 are bits; in expressions they are BOOL
and FLOAT32. Integers compute as unsigned ones of at least 32 bits, which wrap.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.ir.loop import (
    BOOL,
    FLOAT32,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Bitcast,
    Expr,
    Intrin,
    Operand,
    Var,
    cast,
    const,
    equal,
    i32,
    load,
    select,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.reals import FROM_HALF

_MEMORY = {DType.BOOL: UINT8, DType.FLOAT16: UINT16, DType.BFLOAT16: UINT16}
_VALUE = {DType.FLOAT16: FLOAT32, DType.BFLOAT16: FLOAT32}


def memory(dtype: DType) -> DType:
    """Return the type of an element in memory."""
    return _MEMORY.get(dtype, dtype)


def computed(dtype: DType) -> DType:
    """The type of an element in expressions."""
    return _VALUE.get(dtype, dtype)


def wrapping(dtype: DType) -> DType:
    """The unsigned type that integers of a type compute in."""
    return UINT64 if dtype.bytes == 8 else UINT32


def read(pointer: Expr, index: Operand, dtype: DType) -> Expr:
    """Load an element; `pointer` points to memory(dtype)."""
    found = load(pointer, index)
    match dtype:
        case DType.BOOL:
            return select(equal(found, const(0, UINT8)), const(0, BOOL), const(1, BOOL))
        case DType.FLOAT16:
            return FROM_HALF(i32(found))
        case DType.BFLOAT16:
            return Bitcast(i32(cast(found, UINT32) << const(16, UINT32)), FLOAT32)
    return found


def write(k: Builder, pointer: Expr, index: Operand, value: Expr, dtype: DType) -> None:
    """Store an element; `value` has the type computed(dtype)."""
    match dtype:
        case DType.BOOL:
            value = select(value, const(1, UINT8), const(0, UINT8))
        case DType.FLOAT16:
            value = cast(TO_HALF(value), UINT16)
        case DType.BFLOAT16:
            value = cast(TO_BFLOAT(value), UINT16)
    k.store(pointer, index, value)


def _bits(value: float) -> Expr:
    return const(value, FLOAT32)


_X = Var("x", FLOAT32)
_SIGN, _WHOLE, _KEPT = (Var(n, INT32) for n in ("sign", "whole", "kept"))

_A, _LIFTED, _ROUNDED = Var("a", INT32), Var("lifted", FLOAT32), Var("rounded", INT32)
TO_HALF = Intrin(
    "crt_to_half",
    (_X,),
    select(
        const(0x7F800000) < _A,
        const(0x7E00),
        select(
            const(0x477FF000) <= _A,
            const(0x7C00),
            select(_A < 0x38800000, Bitcast(_LIFTED, INT32) - 0x3F000000, _ROUNDED),
        ),
    )
    | _SIGN,
    (
        (_WHOLE, Bitcast(_X, INT32)),
        (_A, _WHOLE & 0x7FFFFFFF),
        (_SIGN, select(_WHOLE < 0, const(0x8000), const(0))),
        # 0.5 has the weight of the last bit of a subnormal float16 in its last
        (_LIFTED, Bitcast(select(_A < 0x38800000, _A, const(0)), FLOAT32) + _bits(0.5)),
        (_KEPT, select(_A < 0x38800000, const(0x38800000), _A)),
        (_ROUNDED, (_KEPT - 0x38000000 + 0xFFF + ((_KEPT >> 13) & 1)) >> 13),
    ),
    doc="The float16 bits nearest to a float32, ties to even.",
)

_REST = (cast(_WHOLE, UINT32) >> const(16, UINT32)) & const(1, UINT32)
TO_BFLOAT = Intrin(
    "crt_to_bfloat",
    (_X,),
    select(
        equal(_X, _X),
        i32(
            (cast(_WHOLE, UINT32) + const(0x7FFF, UINT32) + _REST) >> const(16, UINT32)
        ),
        const(0x7FC0),
    ),
    ((_WHOLE, Bitcast(_X, INT32)),),
    doc="The upper half of a float32, to the nearest, ties to even.",
)
