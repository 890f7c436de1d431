"""DynamicQuantizeLSTM of com.microsoft, which `quantize_dynamic` writes: weights are
int8 or uint8, inputs and states become int8 as they come.

Source  ONNX Runtime, contrib_ops/cpu/quantization/dynamic_quantize_lstm.cc
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.integers.dynamic import (
    RealLayer,
    quantised,
    real_layer,
    real_product,
)
from pybuild.frontends.onnx.operators.recurrent import Direction, recurrent
from pybuild.frontends.onnx.reader.op import Op

# inputs: weights of what is seen and of the state, then their scale and zero point
_SEEN, _STATE, _BIAS, _LENGTHS = (1, 8, 9), (2, 10, 11), 3, 4


class _Direction(Direction):
    """One direction, whose sums are integers: the inputs of all steps become int8 by
    one range, each state by its own."""

    state_axis = 1

    def __init__(self, flow: Flow, number: int, hidden: int) -> None:
        self.of_input = _layer(flow, _SEEN, number, True)
        self.of_state = _layer(flow, _STATE, number, False)
        super().__init__(flow, number, hidden)

    def _weights(self, index: int, number: int) -> str:
        return (self.of_input if index == _SEEN[0] else self.of_state).weights

    def rows(self, x: str) -> list[str]:
        """The input of each step as int8, by the range of those that are computed.

        Errors  BuildError where their number is not known, or not one
        """
        flow, steps = self.flow, self.flow.shape(x)[0]
        count = steps
        if flow.has(_LENGTHS):
            lengths = flow.value(_LENGTHS, "sequence_lens")
            if (lengths != lengths[0]).any():
                hint = "one sequence in a run"
                raise flow.op.invalid("its sequence_lens differ", hint)
            count = min(max(int(lengths[0]), 1), steps)
        q, *self.real = quantised(flow, flow.slice(x, 0, 0, count))
        found = super().rows(q)
        return [*found, *found[-1:] * (steps - count)]

    def seen(self, x: str) -> str:
        scale, zero = self.real
        return real_product(self.flow, (x, scale, zero), self.of_input)

    def remembered(self, h: str) -> str:
        return real_product(self.flow, quantised(self.flow, h), self.of_state)


def _layer(
    flow: Flow, where: tuple[int, int, int], number: int, biased: bool
) -> RealLayer:
    """The constants of a direction's product; the bias of both is the first one's."""
    weights, scale, zero = (
        flow.value(index, what)[number]
        for index, what in zip(where, ("weights", "scale", "zero point"), strict=True)
    )
    bias = None
    if biased and flow.has(_BIAS):
        bias = flow.value(_BIAS, "bias")[number].reshape(2, -1).sum(0)
    return real_layer(flow, weights, scale, zero, bias)


def dynamic_lstm(draft: Draft, op: Op) -> None:
    """Weights [directions, inputs, 4 * hidden], a scale and a zero point for each
    direction, or for each of its gates' rows."""
    flow = Flow(draft, replace(op, kind="LSTM", domain=""))
    if flow.dtype(flow.arg(0)) is not DType.FLOAT32:
        raise op.invalid(f"its input is {flow.dtype(flow.arg(0)).value}, not float32")
    recurrent(flow, _Direction)
