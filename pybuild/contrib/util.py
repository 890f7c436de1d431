"""tvm.contrib.util, as TVM 0.7 called it: pybuild.contrib.utils."""

from __future__ import annotations

from pybuild.contrib.utils import TempDirectory, tempdir

__all__ = ["TempDirectory", "tempdir"]
