"""Marks of layers from a device, as files for viewers of traces."""

from pybuild.traces.trace import Trace, read_trace

__all__ = ["Trace", "read_trace"]
