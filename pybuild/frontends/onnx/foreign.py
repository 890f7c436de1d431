"""Operators of com.microsoft, and hints for unsupported operators."""

from __future__ import annotations

from collections.abc import Callable

from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.integers import (
    dynamic,
    dynamic_lstm,
    few_bits,
    gathered,
    joined,
)
from pybuild.frontends.onnx.operators import quant
from pybuild.frontends.onnx.reader.microsoft import REFUSED
from pybuild.frontends.onnx.reader.op import MICROSOFT, Op

Handler = Callable[[Draft, Op], None]

# domains of QONNX, as Brevitas and qkeras2onnx write them
_QONNX = ("qonnx.", "onnx.brevitas", "finn.")
_QCDQ = "convert it to QCDQ: qonnx-convert --output-style qcdq"


def hint_of(op: Op) -> str:
    """Return the hint for an unsupported operator; "" if there is none."""
    if op.domain.startswith(_QONNX):
        return _QCDQ
    return REFUSED.get(op.kind, "") if op.domain == MICROSOFT else ""


FOREIGN: dict[str, Handler] = {
    "DequantizeLinear": quant.dequantize_linear,
    "DynamicQuantizeLSTM": dynamic_lstm.dynamic_lstm,
    "DynamicQuantizeMatMul": joined.dynamic_matmul,
    "GatherBlockQuantized": gathered.gather_blocks,
    "MatMulIntegerToFloat": joined.matmul_to_float,
    "MatMulNBits": few_bits.matmul_bits,
    "QGemm": quant.qgemm,
    "QLinearAdd": quant.qlinear_binary,
    "QLinearAveragePool": quant.qlinear_unary,
    "QLinearConcat": quant.qlinear_concat,
    "QLinearGlobalAveragePool": quant.qlinear_unary,
    "QLinearLeakyRelu": quant.qlinear_unary,
    "QLinearMul": quant.qlinear_binary,
    "QLinearSigmoid": quant.qlinear_unary,
    "QLinearSoftmax": quant.qlinear_unary,
    "QLinearWhere": quant.qlinear_where,
    "QuantizeLinear": quant.quantize_linear,
}
# what programs of torch need beside ONNX
OF_TORCH: dict[str, Handler] = {
    "LinearOfRange": dynamic.linear_of_range,
    "QuantizeByRange": dynamic.quantize_by_range,
}
