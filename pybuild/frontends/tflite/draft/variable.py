"""A variable of a .tflite file while its graph is being made."""

from __future__ import annotations

from pybuild.dtype import Array
from pybuild.ir.graph import Tensor


class Variable:
    """state: what it held before the run, where that was read; now: what it holds."""

    def __init__(self) -> None:
        self.state: Tensor | None = None
        self.now: Tensor | None = None
        self.initial: Array | None = None
