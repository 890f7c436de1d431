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
from pybuild.frontends.tflite.operators.hybrid import Hybrid, is_hybrid, quantised
from pybuild.ir.graph import Attr, Tensor
from pybuild.records import dataclass

GATES = 4
_LIMITS = {"relu": (0.0, None), "relu_n1_to_1": (-1.0, 1.0), "relu6": (0.0, 6.0)}
# names of int8 rows, of their scales and of their zero points; "": they have none
Rows = tuple[Tensor, str, str]


@dataclass(frozen=True)
class Gates:
    """The weights of all gates as one layer: [4 * units, inputs], a scale for each row,
    and the bias, ""."""

    weights: Tensor
    factor: Tensor
    bias: str = ""


@dataclass(frozen=True)
class Cell:
    """What a step does behind the sums of its gates; clip: 0 is none."""

    activation: str
    clip: float
    asymmetric: bool


def gates_of(call: Call, x: Tensor, first: int, bias: int = 0) -> Gates | None:
    """The gates whose weights are inputs from `first` on; None where they are not int8.

    Errors  BuildError for gates of several types
    """
    held = [call.held(first + gate) for gate in range(GATES)]
    kept = [is_hybrid(call, x, tensor) for tensor, _ in held]
    if not any(kept):
        return None
    if not all(kept):
        raise call.error("has gates of int8 weights and others", "convert it anew")
    scales = [np.full(len(v), t.scale, np.float32) for t, v in held]
    whole = np.concatenate([value for _, value in held])
    builder, name = call.builder, held[0][0].name
    weights = builder.add(Tensor(f"{name}_gates", whole.shape, DType.INT8), whole)
    factor = _constant(call, f"{name}_scales", np.concatenate(scales))
    if not bias:
        return Gates(weights, factor)
    rows = np.concatenate([call.held(bias + gate)[1] for gate in range(GATES)])
    return Gates(weights, factor, _constant(call, f"{name}_bias", rows).name)


def _constant(call: Call, name: str, value: Array) -> Tensor:
    tensor = Tensor(name, value.shape, DType.FLOAT32)
    return call.builder.add(tensor, value.astype(np.float32))


def steps(
    call: Call,
    x: Tensor,
    seen: Gates,
    known: Gates,
    states: tuple[Tensor, Tensor],
    cell: Cell,
) -> tuple[Tensor, Tensor, Tensor]:
    """y [T,B,units], h and c [B,units] after the last step; x [T,B,inputs].

    Each row of the input, and of the state, has a scale of its own.
    """
    flow, (count, batch, width) = Flow(call), x.shape
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
        total = _product(call, (row, marks[0], marks[1]), seen)
        mine = quantised(call, Hybrid("dense", batch, cell.asymmetric), h)
        past = _product(call, mine, known)
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


def _product(call: Call, x: Rows, gates: Gates) -> Tensor:
    q, scale, zero = x
    shape = Tensor(f"{call.label}_sums", (1,), DType.INT32)
    sums = call.between("dense_sums", (q.name, gates.weights.name), {}, shape)
    names = [sums.name, scale, gates.factor.name, gates.bias]
    if zero:
        names += [zero, gates.weights.name]
    while not names[-1]:
        names.pop()
    ends: dict[str, Attr] = {"sums_first": False, "axis": 0}
    real = Tensor(f"{call.label}_real", (1,), DType.FLOAT32)
    return call.between("scale_sums", tuple(names), ends, real)


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
