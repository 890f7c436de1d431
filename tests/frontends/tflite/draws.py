"""How a random file of every TensorFlow Lite operator is drawn: DRAWS."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from tests.frontends.tflite.files import QUANTISED, One
from tests.frontends.tflite.layers import LAYERS
from tests.frontends.tflite.moves import MOVES
from tests.frontends.tflite.products import PRODUCTS
from tests.frontends.tflite.recurrent import RECURRENT

Draw = Callable[[One], None]
FLOAT, INT8, UINT8, INT16 = ("float32",), ("int8",), ("uint8",), ("int16",)
WHOLE = ("int32", "int64")
NUMBERS = (*FLOAT, *WHOLE)
BYTES = ("int8", "uint8")


def unary(low: float = -4, high: float = 4) -> Draw:
    def draw(one: One) -> None:
        bounds = (low, high) if one.kind == "float32" else None
        one.x(one.shape(), bounds=bounds)
        one.y()

    return draw


def rsqrt(one: One) -> None:
    if one.kind == "float32":
        unary(0.01, 50)(one)
        return
    scale, zero = one.quant(one.kind)
    high = one.span(one.kind)[1]
    one.x(one.shape(), quant=(scale, zero), bounds=(max(zero, -128), high))
    low, most = (0.005, 0.2) if one.kind == "int8" else (0.05, 5)
    one.y(quant=one.quant(one.kind, low, most))


def log(one: One) -> None:
    if one.kind == "float32":
        unary(0.001, 50)(one)
        return
    scale, zero = one.quant(one.kind)
    one.x(one.shape(), quant=(scale, zero), bounds=(zero + 1, one.span(one.kind)[1]))
    one.y()


def binary(table: str = "", positive: bool = False, same: bool = False) -> Draw:
    """Two operands that broadcast; `same`: quantised alike."""

    def draw(one: One) -> None:
        shape = one.shape()
        quant = one.quant(one.kind) if same else None
        bounds = (
            (0.5 if one.kind == "float32" else 1, one.span(one.kind)[1])
            if positive
            else None
        )
        first = one.broadcast(shape)
        one.x(first if one.flag() else shape, quant=quant)
        one.x(
            one.broadcast(shape) if tuple(first) == tuple(shape) else shape,
            quant=quant, bounds=bounds,
        )  # fmt: skip
        one.y(quant=quant)
        if table:
            one.with_options(table)

    return draw


def arithmetic(table: str) -> Draw:
    def draw(one: One) -> None:
        binary()(one)
        if one.kind in ("float32", "int32", *QUANTISED):
            one.with_options(table, FusedActivationFunction=one.pick(0, 1, 2, 3))
        else:
            one.with_options(table)

    return draw


def divide(one: One) -> None:
    if one.kind in BYTES:
        # of smaller ratios LiteRT shifts by more bits than there are
        shape, (low, high) = one.shape(), one.span(one.kind)
        one.x(one.broadcast(shape), quant=one.quant(one.kind, 0.1, 0.3))
        quant = one.quant(one.kind, 0.01, 0.02)
        sides = ((low, quant[1] - 1), (quant[1] + 1, high))
        one.x(shape, quant=quant, bounds=one.pick(*sides))
        one.y(quant=one.quant(one.kind, 0.02, 0.1))
    else:
        binary(positive=True)(one)
    one.with_options("DivOptions", FusedActivationFunction=one.pick(0, 1, 3))


def power(one: One) -> None:
    shape = one.shape()
    real = one.kind == "float32"
    one.x(shape, bounds=(0.1, 3) if real else (-5, 5))
    one.x(one.broadcast(shape), bounds=(-3, 3) if real else (0, 6))
    one.y()


def compare(one: One) -> None:
    shape = one.shape()
    bounds = (-2, 3) if one.kind in ("int32", "int64") else None
    one.x(shape, bounds=bounds)
    one.x(one.broadcast(shape), bounds=bounds)
    one.y("bool")


def logical(count: int) -> Draw:
    def draw(one: One) -> None:
        shape = one.shape()
        one.x(shape)
        if count == 2:
            one.x(one.broadcast(shape))
        one.y()

    return draw


def select(one: One) -> None:
    shape, quant = (one.size(2, 4), *one.shape(1, 3)), one.quant(one.kind)
    wide = one.code == "SELECT_V2"
    one.x(one.broadcast(shape) if wide else shape, "bool")
    one.x(shape, quant=quant)
    one.x(one.broadcast(shape) if wide else shape, quant=quant)
    one.y(quant=quant)


def add_n(one: One) -> None:
    """Micro wants all in one scale."""
    shape, quant = one.shape(), one.quant(one.kind)
    for _ in range(one.size(2, 4)):
        one.x(shape, quant=quant)
    one.y()


def prelu(one: One) -> None:
    """Of int16 the slopes are int8."""
    shape, kind = one.shape(2, 4), "int8" if one.kind == "int16" else one.kind
    one.x(shape)
    slopes = one.values(shape[-1:], kind, *one.span(kind))
    one.constant(slopes, kind, one.quant(kind))
    one.y()


def cast(one: One) -> None:
    kinds = ("float32", "int8", "uint8", "int16", "int32", "int64", "bool")
    to = one.pick(*(k for k in kinds if k != one.kind))
    bounds = (0, 100) if to == "uint8" and one.kind == "float32" else None
    one.x(one.shape(), quant=(), bounds=bounds)
    one.y(to, quant=())
    one.with_options("CastOptions")


def leaky(one: One) -> None:
    unary()(one)
    one.with_options("LeakyReluOptions", Alpha=float(one.rng.uniform(0.01, 0.9)))


QUANTISING = {
    "float32": ("int8", "uint8", "int16"),
    "int8": ("int8", "uint8", "int32"),
    "uint8": ("int8", "uint8"),
    "int16": ("int8", "int16", "int32"),
    "int32": ("int8", "int16"),
}


def gelu(one: One) -> None:
    unary()(one)
    one.with_options("GeluOptions", Approximate=one.flag())


def quantize(one: One) -> None:
    wide = one.quant("int16", 0.001, 0.1)
    one.x(one.shape(), quant=wide if one.kind == "int32" else None)
    to = one.pick(*QUANTISING[one.kind])
    one.y(to, quant=wide if to == "int32" else None)


def dequantize(one: One) -> None:
    one.x(one.shape())
    one.y("float32")


def fixed_output(scale: float, zero: int, table: str = "", **fields: float) -> Draw:
    """Functions whose output has a scale of its own."""

    def draw(one: One) -> None:
        one.x(one.shape(2, 4))
        at = zero + 128 if one.kind == "uint8" else zero
        quant = (scale, at) if one.kind in QUANTISED else ()
        one.y(quant=(1 / 32768, 0) if one.kind == "int16" else quant)
        if table:
            one.with_options(table, **fields)

    return draw


_EXTREME = "MaximumMinimumOptions"
ELEMENTS: dict[str, tuple[tuple[str, ...], Draw]] = {
    "ABS": ((*FLOAT, "int32", *INT8), unary()),
    "ADD": ((*NUMBERS, *BYTES), arithmetic("AddOptions")),
    "ADD_N": ((*FLOAT, "int32", *INT8), add_n),
    "CAST": (("float32", "int8", "uint8", "int16", "int32", "int64", "bool"), cast),
    "CEIL": (FLOAT, unary()),
    "COS": (FLOAT, unary(-20, 20)),
    "DEQUANTIZE": (BYTES, dequantize),
    "DIV": ((*FLOAT, "int32", *BYTES), divide),
    "ELU": ((*FLOAT, *INT8), unary()),
    "EQUAL": ((*NUMBERS, *BYTES, "bool"), compare),
    "EXP": ((*FLOAT, *INT8), unary()),
    "FLOOR": (FLOAT, unary()),
    "FLOOR_DIV": ((*FLOAT, "int32", *INT8), binary("FloorDivOptions", True)),
    "FLOOR_MOD": ((*NUMBERS, *INT8), binary("FloorModOptions", True)),
    "GELU": ((*FLOAT, *INT8, *INT16), gelu),
    "GREATER": ((*NUMBERS, *BYTES), compare),
    "GREATER_EQUAL": ((*NUMBERS, *BYTES), compare),
    "HARD_SWISH": ((*FLOAT, *BYTES), unary()),
    "LEAKY_RELU": ((*FLOAT, *BYTES), leaky),
    "LESS": ((*NUMBERS, *BYTES), compare),
    "LESS_EQUAL": ((*NUMBERS, *BYTES), compare),
    "LOG": ((*FLOAT, *INT8), log),
    "LOGICAL_AND": (("bool",), logical(2)),
    "LOGICAL_NOT": (("bool",), logical(1)),
    "LOGICAL_OR": (("bool",), logical(2)),
    "LOGISTIC": ((*FLOAT, *BYTES), fixed_output(1 / 256, -128)),
    "MAXIMUM": ((*NUMBERS, *BYTES, "int16"), binary(_EXTREME, False, True)),
    "MINIMUM": ((*NUMBERS, *BYTES, "int16"), binary(_EXTREME, False, True)),
    "MUL": ((*NUMBERS, *BYTES), arithmetic("MulOptions")),
    "NEG": ((*NUMBERS, *INT8, *INT16), unary()),
    "NOT_EQUAL": ((*NUMBERS, *BYTES, "bool"), compare),
    "POW": ((*FLOAT, "int32"), power),
    "PRELU": ((*FLOAT, *BYTES, *INT16), prelu),
    "QUANTIZE": ((*FLOAT, *BYTES, "int32"), quantize),
    "RELU": ((*FLOAT, *BYTES), unary()),
    "RELU6": ((*FLOAT, *BYTES), unary()),
    "RELU_N1_TO_1": ((*FLOAT, *BYTES), unary()),
    "ROUND": (FLOAT, unary()),
    "RSQRT": ((*FLOAT, *INT8), rsqrt),
    "SELECT": ((*NUMBERS, *BYTES, "int16", "bool"), select),
    "SELECT_V2": ((*NUMBERS, *BYTES, "int16", "bool"), select),
    "SIN": (FLOAT, unary(-20, 20)),
    "SOFTMAX": (
        (*FLOAT, *BYTES), fixed_output(1 / 256, -128, "SoftmaxOptions", Beta=1.0)
    ),
    "SQRT": (FLOAT, unary(0, 50)),
    "SQUARE": (FLOAT, unary()),
    "SQUARED_DIFFERENCE": (
        (*FLOAT, "int32", *INT8), binary("SquaredDifferenceOptions")
    ),
    "SUB": ((*NUMBERS, *BYTES), arithmetic("SubOptions")),
    "TANH": ((*FLOAT, *BYTES), fixed_output(1 / 128, 0)),
}  # fmt: skip
# those that LiteRT has in int16 too
INT16_TOO = (
    "ABS", "ADD", "AVERAGE_POOL_2D", "BATCH_MATMUL", "BATCH_TO_SPACE_ND",
    "BROADCAST_TO", "CONV_2D", "DEPTHWISE_CONV_2D", "DEQUANTIZE",
    "DYNAMIC_UPDATE_SLICE", "EQUAL", "EXP", "EXPAND_DIMS", "FILL", "FLOOR_DIV",
    "FLOOR_MOD", "FULLY_CONNECTED", "GREATER", "GREATER_EQUAL", "LEAKY_RELU", "LESS",
    "LESS_EQUAL", "LOG", "LOGISTIC", "MAX_POOL_2D", "MEAN", "MIRROR_PAD", "MUL",
    "NOT_EQUAL", "PAD", "PADV2", "QUANTIZE", "REDUCE_MAX", "REDUCE_MIN", "RELU",
    "RELU6", "RESHAPE", "RESIZE_NEAREST_NEIGHBOR", "RSQRT", "SLICE", "SOFTMAX",
    "SPACE_TO_BATCH_ND", "SQUEEZE", "SUB", "SUM", "TANH", "TILE", "TRANSPOSE_CONV",
    "UNPACK",
)  # fmt: skip
_DRAWS = {**ELEMENTS, **MOVES, **LAYERS, **PRODUCTS, **RECURRENT}
DRAWS = {
    code: ((*kinds, *INT16) if code in INT16_TOO else kinds, draw)
    for code, (kinds, draw) in _DRAWS.items()
}


def drawn(code: str, kind: str, number: int) -> One:
    """The file of that operator, type and number."""
    seed = zlib.crc32(f"{code}-{kind}-{number}".encode())
    one = One(code, kind, np.random.default_rng(seed))
    DRAWS[code][1](one)
    return one


def all_cases(count: int) -> list[tuple[str, str, int]]:
    return [
        (code, kind, number)
        for code, (kinds, _) in sorted(DRAWS.items())
        for kind in kinds
        for number in range(count)
    ]
