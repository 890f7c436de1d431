"""Libraries and back ends, as in tvm.runtime.module."""

from __future__ import annotations

from pybuild.entry import load_module
from pybuild.executor.factory import Factory as Module
from pybuild.host.timing import BenchmarkResult
from pybuild.install import host_compiler

__all__ = ["BenchmarkResult", "Module", "enabled", "load_module"]

_ALWAYS = ("llvm", "cpu", "stackvm", "rpc", "ext_dev")


def enabled(target: str) -> bool:
    """True if modules for a target run here; "c" needs a compiler."""
    first = (target.split() or [""])[0]
    return bool(host_compiler()) if first == "c" else first in _ALWAYS
