"""Compiles neural networks into static C for microcontrollers.

model = pybuild.load("kws.tflite")
library = model.build("out", name="kws")
net = library.host()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybuild.errors import BuildError, LimitError

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pybuild.build import Library, Model, load

_LATE = ("Library", "Model", "load")
__all__ = ["BuildError", "Library", "LimitError", "Model", "load"]


def __getattr__(name: str) -> Any:
    """What `build.py` gives, imported when first used: `import pybuild` is quick."""
    if name in _LATE:
        from pybuild import build

        return getattr(build, name)
    raise AttributeError(f"module 'pybuild' has no attribute '{name}'")
