"""torch.export's programs (.pt2): read without torch, as nodes of ONNX's operators."""

from pybuild.frontends.torch.load import converted, load, of_torch

__all__ = ["converted", "load", "of_torch"]
