"""Marks of layers from a device, as files for viewers of traces.

Names are imported when they are asked for: the command line does without numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pybuild.traces.trace import Trace, read_trace

__all__ = ["Trace", "read_trace"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("pybuild.traces.trace"), name)
    raise AttributeError(f"module 'pybuild.traces' has no attribute '{name}'")
