"""TVM's tvm.contrib, as far as its runtime scripts use it."""

from __future__ import annotations

from pybuild.contrib import util, utils

__all__ = ["util", "utils"]
