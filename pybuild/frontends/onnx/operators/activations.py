"""Activations that consist of several functions: ELU and its relatives, GELU, softmax.
They are written in forms whose intermediate values do not overflow before the result.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import (
    Handler,
    flowing,
    plain,
    widening,
)
from pybuild.frontends.onnx.operators.eltwise import hard_line


@widening
def leaky_relu(flow: Flow) -> None:
    x = flow.arg(0)
    below = flow.map("less", x, flow.const(0, x))
    alpha = float(flow.op.attrs.get("alpha", 0.01))
    flow.give(flow.map("where", below, flow.scaled(x, alpha), x))


@widening
def hard(flow: Flow) -> None:
    """HardSigmoid and HardSwish."""
    x = flow.arg(0)
    slope, offset = hard_line(flow.op)
    gate = flow.plus(flow.scaled(x, slope), offset)
    gate = flow.map("minimum", gate, flow.const(1, x))
    gate = flow.map("maximum", gate, flow.const(0, x))
    flow.give(flow.mul(x, gate) if flow.op.kind == "HardSwish" else gate)


@widening
def softmax_like(flow: Flow) -> None:
    """Softmax and LogSoftmax, in any type; before opset 13 over all axes from `axis`
    on."""
    op, x = flow.op, flow.arg(0)
    shape = flow.shape(x)
    late = op.opset >= 13
    axis = flow.axis(op.integer("axis", -1 if late else 1), len(shape))
    axes = [axis] if late else list(range(axis, len(shape)))
    if op.kind == "Softmax" and late and flow.dtype(x) is DType.FLOAT32:
        flow.give(flow.emit("softmax", [x], {"axis": axis, "beta": 1.0}))
        return
    moved = flow.sub(x, flow.reduce("max", x, axes))
    power = flow.map("exp", moved)
    total = flow.reduce("sum", power, axes)
    if op.kind == "LogSoftmax":
        flow.give(flow.sub(moved, flow.map("log", total)))
    else:
        flow.give(flow.div(power, total))


def _below_zero(flow: Flow, x: str, below: str, above: str) -> str:
    """Return `below` where x < 0, else `above`; `above` for NaN."""
    return flow.map("where", flow.map("less", x, flow.const(0, x)), below, above)


@widening
def elu(flow: Flow) -> None:
    """x, or alpha * (exp(x) - 1) below 0."""
    x, alpha = flow.arg(0), float(flow.op.attrs.get("alpha", 1.0))
    flow.give(_below_zero(flow, x, flow.scaled(flow.map("expm1", x), alpha), x))


@widening
def celu(flow: Flow) -> None:
    """x, or alpha * (exp(x / alpha) - 1) below 0; for a negative alpha ONNX's
    definition: max(0, x) + min(0, alpha * (exp(x / alpha) - 1))"""
    x, alpha = flow.arg(0), float(flow.op.attrs.get("alpha", 1.0))
    power = flow.map("expm1", flow.div(x, flow.const(alpha, x)) if alpha != 1 else x)
    below = flow.scaled(power, alpha)
    if alpha > 0:
        flow.give(_below_zero(flow, x, below, x))
        return
    zero = flow.const(0, x)
    parts = flow.map("maximum", x, zero), flow.map("minimum", below, zero)
    flow.give(flow.add(*parts))


@widening
def selu(flow: Flow) -> None:
    """gamma * x, or gamma * alpha * (exp(x) - 1) below 0."""
    x, attrs = flow.arg(0), flow.op.attrs
    alpha = float(attrs.get("alpha", 1.67326319217681884765625))
    gamma = float(attrs.get("gamma", 1.05070102214813232421875))
    below = flow.scaled(flow.map("expm1", x), alpha * gamma)
    flow.give(_below_zero(flow, x, below, flow.scaled(x, gamma)))


@flowing
def gelu(flow: Flow) -> None:
    near = str(flow.op.attrs.get("approximate", "none")) == "tanh"
    flow.give(flow.map("gelu_tanh" if near else "gelu", flow.arg(0)))


@widening
def swish(flow: Flow) -> None:
    """x * logistic(alpha * x)"""
    x, alpha = flow.arg(0), float(flow.op.attrs.get("alpha", 1.0))
    flow.give(flow.mul(x, flow.map("sigmoid", flow.scaled(x, alpha))))


@widening
def softsign(flow: Flow) -> None:
    """x / (1 + |x|)"""
    x = flow.arg(0)
    flow.give(flow.div(x, flow.plus(flow.map("abs", x), 1)))


ACTIVATIONS: dict[str, Handler] = {
    "Celu": celu,
    "Elu": elu,
    "Gelu": gelu,
    "LogSoftmax": softmax_like,
    "Mish": plain("mish"),
    "Selu": selu,
    "Softplus": plain("softplus"),
    "Softsign": softsign,
    "Swish": swish,
}
sigmoid = plain("sigmoid")
