"""ONNX files to Graph IR. Importing this does not import the package `onnx`."""

from __future__ import annotations

from pybuild.frontends.onnx.load import load
from pybuild.frontends.onnx.reader.beside import Beside

__all__ = ["Beside", "load"]
