"""UNIDIRECTIONAL_SEQUENCE_LSTM of int8 weights and float32 activations, as TensorFlow's
converter writes by default: its steps one after the other, which a pass makes a loop.

Source  LiteRT lstm_eval.cc: CalculateLstmGateHybrid, UpdateLstmCell,
        CalculateLstmOutput
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators.hybrid import (
    Hybrid,
    Weights,
    is_hybrid,
    product,
    quantised,
)
from pybuild.ir.graph import Tensor
from pybuild.records import dataclass

GATES = 4
_LIMITS = {"relu": (0.0, None), "relu_n1_to_1": (-1.0, 1.0), "relu6": (0.0, 6.0)}


@dataclass(frozen=True)
class Cell:
    """What a step does behind the sums of its gates; clip: 0 is none."""

    activation: str
    clip: float
    asymmetric: bool


def gates_of(call: Call, x: Tensor, first: int, bias: int = 0) -> Weights | None:
    """Return the weights of all gates as one layer, [4 * units, inputs]; None where
    they are not int8.

    first, bias  the inputs of the first gate; bias 0: there is none
    Errors       BuildError for gates of several types, shapes or scales
    """
    held = [call.held(first + gate) for gate in range(GATES)]
    kept = [is_hybrid(call, x, tensor) for tensor, _ in held]
    if not any(kept):
        return None
    if not all(kept):
        raise call.error("has gates of int8 weights and others", "convert it anew")
    shape = held[0][1].shape
    if len(shape) != 2 or any(value.shape != shape for _, value in held):
        shapes = ", ".join(str([*value.shape]) for _, value in held)
        raise call.error(f"has gates of weights {shapes}", "[units, inputs], all alike")
    if any(tensor.quant is None or len(tensor.quant.scale) > 1 for tensor, _ in held):
        raise call.error("has a gate with several scales", "one for each gate")
    scales = [np.full(shape[0], tensor.scale, np.float32) for tensor, _ in held]
    whole = np.concatenate([value for _, value in held])
    builder, name = call.builder, held[0][0].name
    weights = builder.add(Tensor(f"{name}_gates", whole.shape, DType.INT8), whole)
    factor = _constant(call, f"{name}_scales", np.concatenate(scales))
    if not bias:
        return Weights(weights, factor)
    rows = [call.held(bias + gate) for gate in range(GATES)]
    for tensor, value in rows:
        if tensor.dtype is not DType.FLOAT32 or value.shape != shape[:1]:
            what = f"bias '{tensor.name}' is {tensor.dtype.value}{[*value.shape]}"
            raise call.error(what, f"float32[{shape[0]}]")
    whole = np.concatenate([value for _, value in rows])
    return Weights(weights, factor, _constant(call, f"{name}_bias", whole).name)


def _constant(call: Call, name: str, value: Array) -> Tensor:
    tensor = Tensor(name, value.shape, DType.FLOAT32)
    return call.builder.add(tensor, value.astype(np.float32))


def steps(
    call: Call,
    x: Tensor,
    seen: Weights,
    known: Weights,
    states: tuple[Tensor, Tensor],
    cell: Cell,
) -> tuple[Tensor, Tensor, Tensor]:
    """y [T,B,units], h and c [B,units] after the last step; x [T,B,inputs].

    Each row of the input, and of the state, has a scale of its own.
    """
    flow, (count, batch, width) = Flow(call), x.shape
    units = seen.tensor.shape[0] // GATES
    for state in states:
        if state.shape != (batch, units) or state.dtype is not DType.FLOAT32:
            what = f"state '{state.name}' is {state.dtype.value}{[*state.shape]}"
            raise call.error(what, f"float32[{batch},{units}]")
    flat = flow.reshape(x, (count * batch, width))
    q, scale, zero = quantised(
        call, Hybrid("dense", count * batch, cell.asymmetric), flat
    )
    q = flow.reshape(q, (count, batch, width))
    each = [_by_step(flow, name, (count, batch)) for name in (scale, zero)]
    h, c = states
    made = []
    for t in range(count):
        row = flow.reshape(flow.part(q, 0, t, t + 1), (batch, width))
        marks = [_at(flow, one, t) for one in each]
        total = product(call, (row, marks[0], marks[1]), seen)
        mine = quantised(call, Hybrid("dense", batch, cell.asymmetric), h)
        past = product(call, mine, known)
        h, c = _step(flow, flow.node("add", (total, past)), c, cell)
        made.append(flow.reshape(h, (1, *h.shape)))
    return flow.concat(made, 0), h, c


def _by_step(flow: Flow, name: str, shape: tuple[int, int]) -> Tensor | None:
    return flow.reshape(flow.builder.tensors[name], shape) if name else None


def _at(flow: Flow, marks: Tensor | None, step: int) -> str:
    """The scales or zero points of a step's rows."""
    if marks is None:
        return ""
    return flow.reshape(flow.part(marks, 0, step, step + 1), marks.shape[1:]).name


def _step(flow: Flow, total: Tensor, c: Tensor, cell: Cell) -> tuple[Tensor, Tensor]:
    """h and c of a step, by the sums of the input, forget, cell and output gate."""
    units = c.shape[1]
    i, f, g, o = (flow.part(total, 1, n * units, (n + 1) * units) for n in range(GATES))
    i, f, o = (flow.node("logistic", (gate,)) for gate in (i, f, o))
    kept = flow.node("mul", (f, c))
    c = flow.node("add", (kept, flow.node("mul", (_active(flow, g, cell), i))))
    if cell.clip > 0:
        c = flow.held(c, -cell.clip, cell.clip)
    return flow.node("mul", (_active(flow, c, cell), o)), c


def _active(flow: Flow, x: Tensor, cell: Cell) -> Tensor:
    if cell.activation == "tanh":
        return flow.node("tanh", (x,))
    return flow.held(x, *_LIMITS[cell.activation])
