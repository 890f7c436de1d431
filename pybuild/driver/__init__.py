"""TVM's tvm.driver, as far as it is tvmc."""

from __future__ import annotations

from pybuild.driver import tvmc

__all__ = ["tvmc"]
