"""The .tflite front end."""

from __future__ import annotations

from pybuild.frontends.tflite.model import OPERATORS, load

__all__ = ["OPERATORS", "load"]
