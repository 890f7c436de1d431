"""ONNX operators of integers whose scales are computed, or that have none."""
