"""TensorFlow Lite's elementwise operators in plain numbers: float32, integers without
scales, bool. Quantised ones are in fixed.py and tables.py.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators import fixed, layers, tables
from pybuild.frontends.tflite.operators.curves import curve
from pybuild.frontends.tflite.operators.layers import fused
from pybuild.frontends.tflite.operators.quotient import quotient
from pybuild.ir.graph import Tensor

Handler = Callable[[Call], None]
BYTES = (DType.INT8, DType.UINT8)
_FLOAT = (DType.FLOAT32,)
_WHOLE = (DType.INT32, DType.INT64)
_NUMBERS = (*_FLOAT, *_WHOLE)
SMALL = (*BYTES, DType.INT16)


def unsupported(call: Call, x: Tensor, kinds: tuple[DType, ...]) -> BuildError:
    """Return the error for a type that LiteRT has no kernel for either."""
    hint = "LiteRT has it for " + ", ".join(k.value for k in dict.fromkeys(kinds))
    return call.error(f"'{x.name}' is {x.dtype.value}, which is not supported", hint)


def typed(
    call: Call, kinds: tuple[DType, ...], *positions: int
) -> tuple[Flow, list[Tensor]]:
    """Return the inputs at these positions, or all; they must have one of these types,
    and the same."""
    flow = Flow(call)
    tensors = [flow.arg(i) for i in positions] or flow.args()
    for x in tensors:
        if x.dtype not in kinds:
            raise unsupported(call, x, kinds)
        if x.dtype is not tensors[0].dtype:
            what = f"mixes {tensors[0].dtype.value} and {x.dtype.value}"
            raise call.error(what)
    return flow, tensors


def unary(fn: str, kinds: tuple[DType, ...] = _FLOAT) -> Handler:
    """Emit a function of map; for bytes a table, and for int16 if tables.py has one."""
    tabled = (DType.INT8,) if fn in tables.FUNCTIONS else ()
    if fn in tables.CURVES:
        tabled = (*tabled, DType.INT16)

    def handler(call: Call) -> None:
        flow, (x,) = typed(call, (*kinds, *tabled), 0)
        if x.dtype is DType.INT16 and x.dtype in tabled:
            flow.give(curve(fn, flow, x))
        elif x.dtype in tabled:
            _by_table(fn, flow, x)
        else:
            flow.give(flow.map(fn, x))

    return handler


def absolute(call: Call) -> None:
    """ABS; int16 without a scale as it is, else by the scales."""
    kinds = (DType.FLOAT32, DType.INT32, DType.INT8, DType.INT16)
    flow, (x,) = typed(call, kinds, 0)
    if x.dtype is DType.INT8:
        _by_table("abs", flow, x)
    elif x.dtype is DType.INT16 and x.quant is not None:
        flow.give(fixed.absolute(flow, x))
    else:
        flow.give(flow.map("abs", x))


def _by_table(fn: str, flow: Flow, x: Tensor) -> None:
    table = tables.table(fn, flow.call, x, flow.wanted())
    flow.give(flow.lookup(x, table))


def negate(call: Call) -> None:
    """NEG; bytes and int16 are negated as the file's integers, whatever their scale,
    and wrap.

    Source  LiteRT NEG
    """
    kinds = (*_NUMBERS, DType.INT8, DType.INT16)
    flow, (x,) = typed(call, kinds, 0)
    if call.builder.has_twin(call.index(0)):
        name = call.builder.names[call.index(0)]
        what = f"'{name}' is uint8, which is not supported"
        raise call.error(what, f"LiteRT has it for {', '.join(k.value for k in kinds)}")
    scaled = all(one.quant is not None for one in (x, flow.wanted()))
    if x.dtype is DType.INT8 and scaled:
        _by_table("negate", flow, x)
    else:
        flow.give(flow.map("negate", flow.plain(x)))


def square(call: Call) -> None:
    flow, (x,) = typed(call, _FLOAT, 0)
    flow.give(flow.mul(x, x))


def rsqrt(call: Call) -> None:
    """RSQRT; for int16 TFLM has a rule of its own, like that for int8."""
    flow, (x,) = typed(call, (DType.FLOAT32, DType.INT8, DType.INT16), 0)
    if x.dtype is DType.INT8:
        _by_table("rsqrt", flow, x)
    elif x.dtype is DType.INT16:
        flow.give(flow.either(curve("rsqrt", flow, x), fixed.rsqrt(flow, x), "tflm"))
    else:
        flow.give(flow.map("divide", flow.const(1, x), flow.map("sqrt", x)))


def elu(call: Call) -> None:
    """x, or e^x - 1 below 0."""
    flow, (x,) = typed(call, (DType.FLOAT32, DType.INT8), 0)
    if x.dtype is DType.INT8:
        _by_table("elu", flow, x)
        return
    below = flow.map("less", x, flow.const(0, x))
    flow.give(flow.map("where", below, flow.map("expm1", x), x))


def gelu(call: Call) -> None:
    """GELU: x times the share of a normal distribution below x, or its tanh
    approximation."""
    flow, (x,) = typed(call, (DType.FLOAT32, DType.INT8, DType.INT16), 0)
    near = bool(call.option("Approximate"))
    fn = "gelu_tanh" if near else "gelu"
    if x.dtype is DType.INT8:
        _by_table(fn, flow, x)
        return
    if x.dtype is DType.INT16:
        flow.give(curve(fn, flow, x))
        return
    flow.give(flow.map(fn, x))


def hard_swish(call: Call) -> None:
    """x * min(max(x / 6 + 0.5, 0), 1), as ONNX spells it."""
    flow, (x,) = typed(call, (DType.FLOAT32, *BYTES), 0)
    if x.dtype in BYTES:
        _by_table("hard_swish", flow, x)
        return
    line = flow.node("mul", [x, flow.const(1 / 6, x)])
    line = flow.node("add", [line, flow.const(0.5, x)])
    gate = flow.node("clip", [line], {"clamp": (0.0, 1.0)})
    flow.give(flow.node("mul", [x, gate]))


def add_n(call: Call) -> None:
    flow, parts = typed(call, (DType.FLOAT32, DType.INT32, DType.INT8))
    if any(x.shape != parts[0].shape for x in parts):
        raise call.error("its inputs have several shapes")
    if parts[0].dtype is DType.INT8:
        flow.give(fixed.add_n(flow, parts))
        return
    total = parts[0]
    for x in parts[1:]:
        total = flow.add(total, x)
    flow.give(flow.plain(total) if len(parts) > 1 else flow.node("copy", [total]))


def arithmetic(fn: str, layer: Handler) -> Handler:
    """Return a handler that computes int32 and int64 in plain integers that wrap, other
    types by the layer's own rule."""

    def handler(call: Call) -> None:
        if Flow(call).arg(0).dtype in _WHOLE:
            plain_arithmetic(call, fn, _WHOLE)
        else:
            layer(call)

    return handler


def plain_arithmetic(call: Call, fn: str, kinds: tuple[DType, ...]) -> None:
    """ADD; TFLM ignores the fused activation for int32."""
    flow, (a, b) = typed(call, kinds, 0, 1)
    made = flow.map(fn, flow.plain(a), flow.plain(b))
    held = flow.held(made, *fused(call).get("clamp", (None, None)))
    if held is not made and (fn, a.dtype) == ("add", DType.INT32):
        held = flow.either(held, made, "tflm")
    flow.give(held)


def divide(call: Call) -> None:
    kinds = (DType.FLOAT32, DType.INT32, *BYTES)
    flow, (a, b) = typed(call, kinds, 0, 1)
    if a.dtype in BYTES:
        flow.give(quotient(flow, a, b, fused(call).get("clamp", (None, None))))
    else:
        plain_arithmetic(call, "divide", kinds)


def floor_divide(call: Call) -> None:
    """FLOOR_DIV: rounds toward minus infinity."""
    flow, (a, b) = typed(
        call, (DType.FLOAT32, DType.INT32, DType.INT8, DType.INT16), 0, 1
    )
    if a.dtype.is_float:
        flow.give(flow.map("floor", flow.map("divide", a, b)))
        return
    a, b = flow.plain(a), flow.plain(b)
    rest, exact = flow.map("modulo", a, b), flow.map("remainder", a, b)
    one_less = flow.map("where", flow.map("equal", rest, exact), *(
        flow.const(n, a) for n in (0, 1)
    ))  # fmt: skip
    flow.give(flow.sub(flow.map("divide", a, b), one_less))


def floor_mod(call: Call) -> None:
    flow, (a, b) = typed(call, (*_NUMBERS, DType.INT8, DType.INT16), 0, 1)
    flow.give(flow.map("modulo", flow.plain(a), flow.plain(b)))


def power(call: Call) -> None:
    flow, (a, b) = typed(call, (DType.FLOAT32, DType.INT32), 0, 1)
    flow.give(flow.map("power", a, b))


def extreme(fn: str) -> Handler:
    """maximum or minimum, of quantised tensors by their integers."""

    def handler(call: Call) -> None:
        flow, (a, b) = typed(call, (*_NUMBERS, *SMALL), 0, 1)
        flow.give(flow.map(fn, a, b))

    return handler


def squared_difference(call: Call) -> None:
    kinds = (DType.FLOAT32, DType.INT32, DType.INT8, DType.INT16)
    flow, (a, b) = typed(call, kinds, 0, 1)
    if a.dtype in SMALL:
        flow.give(fixed.squared_difference(flow, a, b))
        return
    left = flow.sub(a, b)
    flow.give(flow.mul(left, left))


def compare(name: str) -> Handler:
    """equal, less, ...; quantised bytes by their real values."""
    fn, swapped, inverted = {
        "EQUAL": ("equal", False, False),
        "NOT_EQUAL": ("equal", False, True),
        "GREATER": ("less", True, False),
        "GREATER_EQUAL": ("less_or_equal", True, False),
        "LESS": ("less", False, False),
        "LESS_EQUAL": ("less_or_equal", False, False),
    }[name]

    def handler(call: Call) -> None:
        kinds = (*_NUMBERS, *SMALL)
        flow, (a, b) = typed(
            call, (*kinds, DType.BOOL) if fn == "equal" else kinds, 0, 1
        )
        if a.dtype in BYTES and a.quant is not None and b.quant is not None:
            a, b = fixed.comparable(flow, a), fixed.comparable(flow, b)
        a, b = flow.plain(a), flow.plain(b)
        made = flow.map(fn, b, a) if swapped else flow.map(fn, a, b)
        flow.give(flow.map("not", made) if inverted else made)

    return handler


def quantize(call: Call) -> None:
    """Converts to and from int32 in fixed point, other types by the layer's own
    rule."""
    flow = Flow(call)
    x, y = flow.arg(0), flow.wanted()
    if DType.INT32 not in (x.dtype, y.dtype):
        layers.quantize(call)
        return
    for tensor in (x, y):
        if tensor.dtype not in (DType.INT8, DType.INT16, DType.INT32):
            raise unsupported(call, tensor, (DType.INT8, DType.INT16, DType.INT32))
    fixed.whole_scale(flow, x, y)
    made = flow.requantized(flow.centred(x), x.scale / y.scale)
    flow.give(flow.quantised(made, y))


def logical(fn: str) -> Handler:
    def handler(call: Call) -> None:
        flow, inputs = typed(call, (DType.BOOL,))
        flow.give(flow.map(fn, *inputs))

    return handler


def select(call: Call) -> None:
    """SELECT; the old form selects rows."""
    flow, (condition,) = typed(call, (DType.BOOL,), 0)
    kinds = (*_NUMBERS, *SMALL, DType.BOOL, DType.UINT32)
    _, (a, b) = typed(call, kinds, 1, 2)
    rank = len(a.shape)
    if call.flat.code == "SELECT" and len(condition.shape) == 1 and rank > 1:
        condition = flow.reshape(condition, (*condition.shape, *(1,) * (rank - 1)))
    flow.give(flow.map("where", condition, flow.plain(a), flow.plain(b)))


def prelu(call: Call) -> None:
    """PRELU: x, or alpha * x below 0; alpha of an int16 x is int8."""
    flow, (x,) = typed(call, (DType.FLOAT32, *SMALL), 0)
    alpha = flow.arg(1)
    wanted = DType.INT8 if x.dtype is DType.INT16 else x.dtype
    if alpha.dtype is not wanted:
        raise call.error(f"'{alpha.name}' is {alpha.dtype.value}, not {wanted.value}")
    if x.dtype is DType.INT8:
        fixed.whole_scale(flow, x, alpha, flow.wanted())
        call.emit("prelu", (x.name, alpha.name), {})
        return
    if x.dtype in SMALL:
        flow.give(fixed.prelu(flow, x, alpha))
        return
    below = flow.map("less", x, flow.const(0, x))
    flow.give(flow.map("where", below, flow.mul(x, alpha), x))


def cast(call: Call) -> None:
    """CAST: converts the file's integers, whatever their scale."""
    flow, builder = Flow(call), call.builder
    x, to = flow.plain(flow.arg(0)), flow.wanted().dtype
    if builder.has_twin(call.index(0)):
        x = flow.plus(flow.cast(x, DType.INT32), 128)
    if builder.has_twin(call.flat.outputs[0]):
        x = flow.plus(flow.cast(flow.cast(x, DType.UINT8), DType.INT32), -128)
    flow.give(flow.cast(x, to))


ELEMENTS: dict[str, Handler] = {
    "ABS": absolute,
    "ADD": arithmetic("add", layers.add),
    "ADD_N": add_n,
    "CAST": cast,
    "CEIL": unary("ceil"),
    "COS": unary("cos"),
    "DIV": divide,
    "ELU": elu,
    "EXP": unary("exp"),
    "FLOOR": unary("floor"),
    "FLOOR_DIV": floor_divide,
    "FLOOR_MOD": floor_mod,
    "GELU": gelu,
    "HARD_SWISH": hard_swish,
    "LOG": unary("log"),
    "LOGICAL_AND": logical("and"),
    "LOGICAL_NOT": logical("not"),
    "LOGICAL_OR": logical("or"),
    "MAXIMUM": extreme("maximum"),
    "MINIMUM": extreme("minimum"),
    "MUL": arithmetic("multiply", layers.mul),
    "NEG": negate,
    "POW": power,
    "PRELU": prelu,
    "QUANTIZE": quantize,
    "ROUND": unary("round"),
    "RSQRT": rsqrt,
    "SELECT": select,
    "SELECT_V2": select,
    "SIN": unary("sin"),
    "SQRT": unary("sqrt"),
    "SQUARE": square,
    "SQUARED_DIFFERENCE": squared_difference,
    "SUB": arithmetic("subtract", layers.sub),
    **{
        name: compare(name)
        for name in (
            "EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL",
        )
    },
}  # fmt: skip
