"""A variable of a .tflite file during import."""

from __future__ import annotations

from pybuild.dtype import Array
from pybuild.ir.graph import Tensor


class Variable:
    """state: its value before the run, if that was read; now: its current value."""

    def __init__(self) -> None:
        self.state: Tensor | None = None
        self.now: Tensor | None = None
        self.initial: Array | None = None
