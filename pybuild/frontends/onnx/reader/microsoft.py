"""Operators of com.microsoft that are refused: what to do instead."""

from __future__ import annotations

_BEFORE = "ONNX Runtime's optimiser made it: give the file from before"
_FOUR_BITS = "quantise to int8: onnxruntime.quantization.quantize_static or --quantise"
# com.microsoft's operators that quantisers and optimisers emit and we have not: the way
REFUSED = {
    "QAttention": "quantise the model before transformers' layers are fused",
    "QEmbedLayerNormalization": "quantise the model before its layers are fused",
    "MatMulBnb4": _FOUR_BITS,
    "QLinearReduceMean": _BEFORE,
}
