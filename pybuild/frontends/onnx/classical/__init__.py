"""Classical machine learning of ai.onnx.ml as general operators."""
