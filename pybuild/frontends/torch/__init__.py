"""Programs of torch.export (.pt2): read without torch, as nodes of ONNX operators."""

from pybuild.frontends.torch.load import converted, load, of_torch

__all__ = ["converted", "load", "of_torch"]
