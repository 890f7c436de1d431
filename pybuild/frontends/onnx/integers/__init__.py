"""ONNX operators on integers whose scales are computed, or that have no scale."""
