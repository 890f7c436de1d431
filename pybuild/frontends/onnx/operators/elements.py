"""Elementwise operators in every type: arithmetic, logic, comparison, conversion."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from pybuild.dtype import HALVES, DType
from pybuild.errors import BuildError
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.draft.flow import Axes, Flow
from pybuild.frontends.onnx.draft.unsigned import lift
from pybuild.frontends.onnx.reader.op import Op

Handler = Callable[[Draft, Op], None]
Flowing = Callable[[Flow], None]


def flowing(body: Flowing) -> Handler:
    """Turn a function of a flow into a handler."""

    def handler(draft: Draft, op: Op) -> None:
        body(Flow(draft, op))

    return handler


class Wide(Flow):
    """A flow that computes float16 and bfloat16 inputs as float32 and rounds only its
    outputs: operators written as several nodes round once, and intermediate values do
    not overflow."""

    def __init__(self, draft: Draft, op: Op) -> None:
        super().__init__(draft, op)
        self._half: DType | None = None
        self._narrow: dict[str, str] = {}

    wide = True

    def plain(self, name: str) -> str:
        found = super().plain(name)
        if self.dtype(found) not in HALVES:
            return found
        self._half = self.dtype(found)
        made = self.cast(found, DType.FLOAT32)
        self._narrow[made] = found
        return made

    def reduce(self, fn: str, x: str, axes: Axes, keep: bool = True) -> str:
        """Reduces an input without widening it first: the sum is float32 all the
        same."""
        return super().reduce(fn, self._narrow.get(x, x) if axes else x, axes, keep)

    def give(self, name: str, index: int = 0) -> None:
        half = self._half
        if half is not None and self.dtype(name) is DType.FLOAT32:
            name = self.cast(name, half)
        super().give(name, index)


def widening(body: Flowing) -> Handler:
    """A handler like `flowing` that computes in float32."""

    def handler(draft: Draft, op: Op) -> None:
        body(Wide(draft, op))

    return handler


def plain(fn: str) -> Handler:
    """Return a handler for one elementwise function."""

    @flowing
    def handler(flow: Flow) -> None:
        flow.give(flow.map(fn, *flow.args()))

    return handler


def chained(fn: str) -> Handler:
    """Return a handler that folds a binary function over any number of inputs."""

    @flowing
    def handler(flow: Flow) -> None:
        first, *rest = flow.args()
        flow.give(functools.reduce(lambda a, b: flow.map(fn, a, b), rest, first))

    return handler


def quantised(draft: Draft, name: str) -> bool:
    """Return True if the integer layers can take the tensor: it is float32, or int8
    with a scale from the file."""
    if name in draft.values:
        return draft.values[name].dtype not in (np.float16, np.float64)
    tensor = draft.tensors[name]
    if tensor.dtype is DType.INT8:
        unit = tensor.quant is None or tensor.quant.scale == (1.0,)
        return not unit
    return tensor.dtype is DType.FLOAT32


def either(layer: Handler, general: Handler) -> Handler:
    """Return a handler that tries the specialised layer first, then the general
    nodes."""

    def handler(draft: Draft, op: Op) -> None:
        if all(quantised(draft, name) for name in op.inputs if name):
            try:
                layer(draft, op)
                return
            except BuildError:
                if any(name in draft.tensors for name in op.outputs if name):
                    raise
        general(draft, op)

    return handler


def either_scaled(layer: Handler, general: Handler) -> Handler:
    """Return the handler of DequantizeLinear; 16 bits from a quantize node go to the
    layer, too."""
    usual = either(layer, general)

    def handler(draft: Draft, op: Op) -> None:
        tensor = draft.tensors.get(op.input(0))
        scale, zero = draft.known(op.input(1)), draft.known(op.input(2))
        quant = tensor.quant if tensor is not None else None
        wide = tensor is not None and tensor.dtype is DType.INT16
        scales = () if scale is None else tuple(map(float, scale.reshape(-1)))
        zeros: tuple[int, ...] = (0,)
        if zero is not None:
            zeros = tuple(int(z) - lift(zero.dtype.name) for z in zero.reshape(-1))
        elif op.input(0) in draft.unsigned:
            zeros = (DType.INT16.low,)
        same = quant is not None and (quant.scale, quant.zero_point) == (scales, zeros)
        if wide and same:
            layer(draft, op)
        else:
            usual(draft, op)

    return handler


def either_cast(layer: Handler, general: Handler) -> Handler:
    """Return a handler for Cast that makes a layer of a cast from image bytes to
    float32."""

    def handler(draft: Draft, op: Op) -> None:
        if op.input(0) not in draft.values:
            try:
                layer(draft, op)
                return
            except BuildError:
                pass
        general(draft, op)

    return handler


@widening
def mean(flow: Flow) -> None:
    first, *rest = flow.args()
    total = functools.reduce(flow.add, rest, first)
    flow.give(flow.div(total, flow.const(len(rest) + 1, total)))


@flowing
def power(flow: Flow) -> None:
    """Pow; the exponent may differ in type from the base, whose type the result has."""
    x, y = flow.arg(0), flow.arg(1)
    base, exponent = flow.dtype(x), flow.dtype(y)
    if not base.is_float and exponent.is_float:
        wide = flow.map(
            "power", flow.cast(x, DType.FLOAT64), flow.cast(y, DType.FLOAT64)
        )
        # a power that is whole may come out a little below
        whole = flow.map("round", wide)
        apart = flow.map("abs", flow.sub(wide, whole))
        near = flow.map("less", apart, flow.scaled(flow.map("abs", wide), 1e-12))
        flow.give(flow.cast(flow.map("where", near, whole, wide), base))
        return
    flow.give(flow.map("power", x, flow.cast(y, base)))


@flowing
def modulo(flow: Flow) -> None:
    fn = "remainder" if flow.op.integer("fmod", 0) else "modulo"
    flow.give(flow.map(fn, *flow.args()))


@flowing
def shift(flow: Flow) -> None:
    side = str(flow.op.attrs.get("direction", "LEFT")).lower()
    flow.give(flow.map(f"shift_{side}", *flow.args()))


@flowing
def greater(flow: Flow) -> None:
    a, b = flow.args()
    flow.give(flow.map("less", b, a))


@flowing
def greater_or_equal(flow: Flow) -> None:
    a, b = flow.args()
    flow.give(flow.map("less_or_equal", b, a))


@flowing
def is_infinite(flow: Flow) -> None:
    x = flow.arg(0)
    up, down = (
        bool(flow.op.integer(f"detect_{s}", 1)) for s in ("positive", "negative")
    )
    made = flow.map("is_infinite", x)
    if not (up and down):
        zero = flow.const(0, x)
        side = flow.map("less", zero, x) if up else flow.map("less", x, zero)
        made = flow.map("and", made, side)
    if not (up or down):
        made = flow.map("xor", made, made)
    flow.give(made)


@flowing
def binarize(flow: Flow) -> None:
    """ai.onnx.ml Binarizer: 1 above a threshold, else 0."""
    x = flow.arg(0)
    least = flow.const(float(flow.op.attrs.get("threshold", 0.0)), x)
    flow.give(flow.cast(flow.map("less", least, x), flow.dtype(x)))


@flowing
def reciprocal(flow: Flow) -> None:
    x = flow.arg(0)
    flow.give(flow.div(flow.const(1, x), x))


@flowing
def relu(flow: Flow) -> None:
    x = flow.arg(0)
    flow.give(flow.map("maximum", x, flow.const(0, x)))


@flowing
def clip(flow: Flow) -> None:
    x = flow.arg(0)
    for index, (key, fn) in enumerate((("min", "maximum"), ("max", "minimum")), 1):
        if flow.has(index):
            bound = flow.arg(index)
        elif key in flow.op.attrs:
            bound = flow.const(flow.op.attrs[key], x)
        else:
            continue
        x = flow.map(fn, x, bound)
    flow.give(x)


@widening
def prelu(flow: Flow) -> None:
    x, slope = flow.args()
    below = flow.map("less", x, flow.const(0, x))
    flow.give(flow.map("where", below, flow.mul(x, slope), x))


def onnx_type(op: Op, number: int) -> DType:
    """Return the element type for ONNX's type number.

    Errors  BuildError for an unsupported element type
    """
    from onnx import helper

    try:
        return DType(np.dtype(helper.tensor_dtype_to_np_dtype(number)).name)
    except (KeyError, TypeError, ValueError):
        from onnx import TensorProto

        name = TensorProto.DataType.Name(number).lower()
        what = f"a change to type {name} is not supported"
        raise op.invalid(what, "use a float, integer or bool type") from None


@flowing
def cast(flow: Flow) -> None:
    flow.give(flow.cast(flow.arg(0), onnx_type(flow.op, flow.op.integer("to", 1))))


@flowing
def cast_like(flow: Flow) -> None:
    flow.give(flow.cast(flow.arg(0), flow.dtype(flow.arg(1))))


@flowing
def bit_cast(flow: Flow) -> None:
    """The same bits as another type of the same size."""
    to = onnx_type(flow.op, flow.op.integer("to", 1))
    x = flow.arg(0)
    x = flow.cast(x, DType.UINT8) if flow.dtype(x) is DType.BOOL else x
    flow.give(flow.map("bits", x, to=to.value))


@flowing
def identity(flow: Flow) -> None:
    """Pass the input on; for Dropout in inference, also a mask that is all true."""
    op = flow.op
    if op.kind == "Dropout" and flow.has(2):
        if bool(flow.value(2, "training_mode").any()) and op.input(1):
            ratio = flow.value(1, "ratio")
            if float(ratio.reshape(())) != 0:
                raise op.invalid("training mode is random")
        elif bool(flow.value(2, "training_mode").any()):
            raise op.invalid("training mode is random")
    x = flow.arg(0)
    flow.give(x)
    if len(op.outputs) > 1 and op.outputs[1]:
        flow.give(flow.expand(flow.const(True), flow.shape(x)), 1)


@flowing
def hardmax(flow: Flow) -> None:
    """1 for the first maximum, 0 elsewhere; before opset 13 over all axes from `axis`
    on."""
    op, x = flow.op, flow.arg(0)
    shape = whole = flow.shape(x)
    late = op.opset >= 13 and not op.integer("flattened", 0)
    axis = flow.axis(op.integer("axis", -1 if late else 1), len(shape))
    if not late:
        shape = (*shape[:axis], math.prod(shape[axis:]))
        x = flow.reshape(x, shape)
    places = flow.emit("arg_reduce", [x], {"fn": "max", "axis": axis, "last": False})
    row = [1] * len(shape)
    row[axis] = shape[axis]
    count = np.arange(shape[axis]).reshape(row)
    hit = flow.map("equal", places, flow.const(count, DType.INT64))
    flow.give(flow.reshape(flow.cast(hit, flow.dtype(x)), whole))


ELEMENTS: dict[str, Handler] = {
    **{
        kind: plain(fn)
        for kind, fn in {
            "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "And": "and",
            "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
            "BitwiseAnd": "bit_and", "BitwiseNot": "bit_not", "BitwiseOr": "bit_or",
            "BitwiseXor": "bit_xor", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh",
            "Equal": "equal", "Erf": "erf", "Exp": "exp", "Floor": "floor",
            "Less": "less", "LessOrEqual": "less_or_equal", "Log": "log",
            "Neg": "negate", "Not": "not", "Or": "or", "Round": "round",
            "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan",
            "Where": "where", "Xor": "xor", "IsNaN": "is_nan",
        }.items()
    },
    "BitCast": bit_cast,
    "BitShift": shift,
    "CastLike": cast_like,
    "Greater": greater,
    "GreaterOrEqual": greater_or_equal,
    "Hardmax": hardmax,
    "IsInf": is_infinite,
    "Max": chained("maximum"),
    "Mean": mean,
    "Min": chained("minimum"),
    "Mod": modulo,
    "PRelu": prelu,
    "Pow": power,
    "Reciprocal": reciprocal,
    "Sum": chained("add"),
}  # fmt: skip
