"""The part of tvm.runtime that scripts for TVM use: arrays, libraries, parameter
files."""

from __future__ import annotations

from pybuild.runtime.module import BenchmarkResult, Module, enabled, load_module
from pybuild.runtime.ndarray import (
    Device,
    NDArray,
    array,
    cpu,
    device,
    empty,
    ext_dev,
    from_dlpack,
)
from pybuild.runtime.params import (
    load_param_dict,
    load_param_dict_from_file,
    save_param_dict,
    save_param_dict_to_file,
)

__all__ = [
    "BenchmarkResult", "Device", "Module", "NDArray", "array", "context", "cpu",
    "device", "empty",
    "enabled", "ext_dev", "from_dlpack", "load_module", "load_param_dict",
    "load_param_dict_from_file", "save_param_dict",
    "save_param_dict_to_file", "tensor",
]  # fmt: skip

tensor = array
# as TVM 0.7 called it
context = device
