"""ONNX files to Graph IR. Importing this does not import the package `onnx`."""

from __future__ import annotations

from pybuild.frontends.onnx.beside import Beside
from pybuild.frontends.onnx.load import load

__all__ = ["Beside", "load"]
