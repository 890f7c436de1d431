"""Compiles neural networks into static C for microcontrollers.

model = pybuild.load("kws.tflite")
library = model.build("out", name="kws")
net = library.host()
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybuild.errors import BuildError, BuildWarning, LimitError
from pybuild.moved import Moved

with open(Path(__file__).with_name("VERSION"), encoding="utf-8") as _file:
    __version__ = _file.read().strip()

sys.meta_path.append(Moved())

if TYPE_CHECKING:
    from pybuild import (
        contrib,
        debug_executor,
        driver,
        error,
        features,
        graph_executor,
        micro,
        relay,
        rpc,
        runtime,
        testing,
    )
    from pybuild.check_build import check
    from pybuild.chips.fit import fit
    from pybuild.entry import Quantised, build, chain, load, load_module, quantise
    from pybuild.error import TVMError
    from pybuild.evidence.write import write_evidence
    from pybuild.front import normalised
    from pybuild.graph_builder import GraphBuilder
    from pybuild.image import Image, build_image
    from pybuild.library import Library
    from pybuild.model import Model
    from pybuild.ops.base.functions import function, functions
    from pybuild.runtime import context, cpu, device, ext_dev
    from pybuild.runtime import ndarray as nd
    from pybuild.sweeps.sweep import sweep

# imported when first used: `import pybuild` is quick
_LATE = {
    "GraphBuilder": "graph_builder",
    "Image": "image",
    "Library": "library",
    "Model": "model",
    "Quantised": "entry",
    "TVMError": "error",
    "build": "entry",
    "build_image": "image",
    "chain": "entry",
    "check": "check_build",
    "context": "runtime",
    "cpu": "runtime",
    "device": "runtime",
    "fit": "chips.fit",
    "ext_dev": "runtime",
    "function": "ops.base.functions",
    "functions": "ops.base.functions",
    "load": "entry",
    "load_module": "entry",
    "normalised": "front",
    "quantise": "entry",
    "sweep": "sweeps.sweep",
    "write_evidence": "evidence.write",
}
_MODULES = {
    "contrib": "contrib",
    "error": "error",
    "debug_executor": "debug_executor",
    "driver": "driver",
    "features": "features",
    "graph_executor": "graph_executor",
    "micro": "micro",
    "nd": "runtime.ndarray",
    "relay": "relay",
    "rpc": "rpc",
    "runtime": "runtime",
    "testing": "testing",
}
__all__ = [
    "BuildError", "BuildWarning", "GraphBuilder", "Image", "Library", "LimitError",
    "Model", "Quantised", "TVMError", "build", "build_image", "chain", "check",
    "context", "contrib", "cpu", "debug_executor", "device", "driver", "error",
    "ext_dev", "features", "fit", "function", "functions", "graph_executor", "load",
    "load_module", "micro", "nd", "normalised", "quantise", "relay", "rpc", "runtime",
    "sweep", "testing", "write_evidence",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name[:2] == "__")})


def __getattr__(name: str) -> Any:
    name = {"quantize": "quantise"}.get(name, name)
    if name in _LATE:
        return getattr(import_module(f"pybuild.{_LATE[name]}"), name)
    if name in _MODULES:
        return import_module(f"pybuild.{_MODULES[name]}")
    raise AttributeError(f"module 'pybuild' has no attribute '{name}'")
