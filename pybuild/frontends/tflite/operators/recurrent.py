"""Operators with state of their own: SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators import layers
from pybuild.frontends.tflite.operators.elements import typed
from pybuild.frontends.tflite.operators.hybrid import (
    Hybrid,
    Weights,
    is_hybrid,
    product,
    quantised,
)
from pybuild.frontends.tflite.operators.hybrid_lstm import (
    GATES,
    Cell,
    gates_of,
    steps,
)
from pybuild.frontends.tflite.operators.layers import fused
from pybuild.frontends.tflite.operators.variables import keep, own
from pybuild.ir.graph import Attr, Tensor

# the operator's inputs: what four gates have, and what no gate may have
_SEEN, _KNOWN, _BIAS, _H, _C = 1, 5, 12, 18, 19
_BEYOND = {
    9: "peephole connections", 10: "peephole connections", 11: "peephole connections",
    16: "a projection", 17: "a projection", 20: "layer normalisation",
    21: "layer normalisation", 22: "layer normalisation", 23: "layer normalisation",
}  # fmt: skip
# FusedActivationFunction of a cell; with none, LiteRT multiplies by what its scratch
# memory happens to hold
_ACTIVATIONS = {1: "relu", 2: "relu_n1_to_1", 3: "relu6", 4: "tanh"}
# the one of five tensors of scales that says how the output is quantised
_HIDDEN = 4


def lstm(call: Call) -> None:
    """LSTM; each gate's weights are separate inputs, and h is the last step of the
    output.

    Shapes  x [T,B,I] or [B,T,I]  w [H,I]  r [H,H]  bias [H]  h, c [B,H]
    """
    flow, (x,) = typed(call, (DType.FLOAT32, DType.INT8, DType.INT16), 0)
    _usual(call)
    activation = _activation(call, x)
    major = bool(call.option("TimeMajor"))
    clip = float(call.any_option("CellClip") or 0.0)
    seen, known = gates_of(call, x, _SEEN, _BIAS), gates_of(call, x, _KNOWN)
    if seen is not None and known is not None:
        asymmetric = bool(call.option("AsymmetricQuantizeInputs"))
        _in_int8(call, x, (seen, known), Cell(activation, clip, asymmetric))
        return
    gates = [
        _real(call, x, first + gate)
        for first in (_SEEN, _KNOWN, _BIAS)
        for gate in range(GATES)
    ]
    h, c = own(call, _H), own(call, _C)
    builder = call.builder
    made = builder.add(replace(c, name=builder.fresh(c.name)))
    attrs: dict[str, Attr] = {"time_major": major, "cell_clip": clip}
    attrs |= {"activation": activation} if activation != "tanh" else {}
    attrs |= _hidden(call, x)
    names = (x.name, h.name, c.name, *gates)
    call.emit("lstm", names, attrs, more=(made.name,))
    y = builder.known[call.flat.outputs[0]]
    axis = 0 if major else 1
    last = flow.part(y, axis, y.shape[axis] - 1, y.shape[axis])
    keep(call, _H, flow.reshape(last, h.shape))
    keep(call, _C, made)


def _real(call: Call, x: Tensor, position: int) -> str:
    """Return a gate's weights or bias; float32 ones if the activations are."""
    if x.dtype is not DType.FLOAT32:
        return call.tensor(position).name
    return call.builder.add(*layers.weights(call, x, False, position)).name


def _in_int8(call: Call, x: Tensor, gates: tuple[Weights, Weights], cell: Cell) -> None:
    """The operator with int8 weights on float32 activations."""
    flow, major = Flow(call), bool(call.option("TimeMajor"))
    if len(x.shape) != 3:
        raise call.error(f"input {list(x.shape)}", "[steps, batch, inputs]")
    turned = x if major else flow.transpose(x, (1, 0, 2))
    y, h, c = steps(call, turned, *gates, (own(call, _H), own(call, _C)), cell)
    keep(call, _H, h)
    keep(call, _C, c)
    flow.give(y if major else flow.transpose(y, (1, 0, 2)))


def _usual(call: Call) -> None:
    """Check that an LSTM has the form that Keras writes; raise BuildError otherwise."""
    hint = "TensorFlow Lite Micro has the LSTM of Keras only"
    for position, what in _BEYOND.items():
        if call.has(position):
            raise call.error(f"has {what}", hint)
    if not call.has(_SEEN):
        raise call.error("has no input gate", hint)
    if call.any_option("DiagonalRecurrentTensors"):
        raise call.error("has diagonal recurrent weights", hint)


def _activation(call: Call, x: Tensor) -> str:
    """Return the activation of the cell gate, and of the cell state at the output.

    Errors  BuildError for one that LiteRT does not have: integers only have tanh
    """
    name = _ACTIVATIONS.get(call.option("FusedActivationFunction"), "")
    if not name or (name != "tanh" and x.dtype is not DType.FLOAT32):
        what = f"has another activation than tanh on {x.dtype.value}"
        raise call.error(what, "of float32 there are RELU, RELU_N1_TO_1 and RELU6 too")
    return name


def _hidden(call: Call, x: Tensor) -> dict[str, Attr]:
    """Return how LiteRT quantises the hidden state, if the file says so."""
    within, tensors = call.flat.within, call.builder.model.tensors
    if x.dtype is not DType.INT8 or len(within) <= _HIDDEN:
        return {}
    if not 0 <= within[_HIDDEN] < len(tensors):
        raise call.error(f"refers to tensor {within[_HIDDEN]} of {len(tensors)}")
    flat = tensors[within[_HIDDEN]]
    if len(flat.scale) != 1 or not 1e-30 < flat.scale[0] < 1e30:
        raise call.error(f"'{flat.name}' has no scale")
    zero = (flat.zero_point or (0,))[0]
    return {"hidden_scale": flat.scale[0], "hidden_zero": zero}


def svdf(call: Call) -> None:
    """Shapes  x [B,I]  feature [F,I]  time [F,M]  bias [F/rank]  state [B,F*M]

    Source  LiteRT and TFLM hold integers within their type only, whatever the
            activation
    """
    _, (x,) = typed(call, (DType.FLOAT32, DType.INT8), 0)
    attrs: dict[str, Attr] = {"rank": max(1, call.option("Rank"))}
    clamp = fused(call)
    if x.dtype is DType.FLOAT32:
        attrs |= clamp
    elif clamp not in ({}, {"clamp": (0.0, None)}):
        hint = "LiteRT has RELU there, TensorFlow Lite Micro also NONE"
        raise call.error("has another activation than RELU on int8", hint)
    seen = _filtered(call, x)
    if seen is None:
        seen, (feature, time) = x, (_real(call, x, i) for i in (1, 2))
    else:
        feature, time = "", _weights_of_time(call, x)
    bias = call.tensor(3).name if call.has(3) else ""
    state, builder = own(call, 4), call.builder
    made = builder.add(replace(state, name=builder.fresh(state.name)))
    names = (seen.name, state.name, feature, time, bias)
    call.emit("svdf", names, attrs, more=(made.name,))
    keep(call, 4, made)


def _filtered(call: Call, x: Tensor) -> Tensor | None:
    """Emit what the filters make of the input, where their weights stay int8; return
    None where they do not.

    Source  LiteRT EvalHybridSVDF: one scale of the weights, one of each row of the
            input
    """
    tensor, value = _held(call, 1)
    if not is_hybrid(call, x, tensor):
        return None
    if len(x.shape) != 2 or value.ndim != 2:
        what = f"input {list(x.shape)}, weights {list(value.shape)}"
        raise call.error(what, "[batch, inputs] and [filters, inputs]")
    asymmetric, builder = bool(call.option("AsymmetricQuantizeInputs")), call.builder
    rows = quantised(call, Hybrid("dense", x.shape[0], asymmetric), x)
    weights = builder.add(Tensor(tensor.name, value.shape, DType.INT8), value)
    scale = Tensor(f"{tensor.name}_scale", (1,), DType.FLOAT32)
    factor = builder.add(scale, np.full(1, tensor.scale, np.float32))
    return product(call, rows, Weights(weights, factor))


def _weights_of_time(call: Call, x: Tensor) -> str:
    """Return the weights of the states, as int8 if they are."""
    tensor, value = _held(call, 2)
    if is_hybrid(call, x, tensor):
        return call.builder.add(tensor, value).name
    return _real(call, x, 2)


def _held(call: Call, position: int) -> tuple[Tensor, Array]:
    """Return constant weights, which have one scale if they are int8."""
    tensor, value = call.held(position)
    if tensor.quant is not None and len(tensor.quant.scale) > 1:
        raise call.error(f"'{tensor.name}' has several scales", "one for all of it")
    return tensor, value


RECURRENT: dict[str, Callable[[Call], None]] = {
    "SVDF": svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
}
