"""Arrays and devices, as in tvm.nd."""

from __future__ import annotations

from pybuild.host.ndarray import (
    Device,
    NDArray,
    array,
    cpu,
    device,
    empty,
    ext_dev,
    from_dlpack,
)

__all__ = [
    "Device", "NDArray", "array", "context", "cpu", "device", "empty", "ext_dev",
    "from_dlpack",
]  # fmt: skip

# as TVM 0.7 called it
context = device
