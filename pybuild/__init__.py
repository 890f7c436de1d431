"""Compiles neural networks into static C for microcontrollers.

    model = pybuild.load("kws.tflite")
    library = model.build("out", name="kws")
    net = library.host()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pybuild.build import Library, Model, load

__all__ = ["Library", "Model", "load"]


def __getattr__(name: str) -> Any:
    """The names of `__all__`, imported when first used: `import pybuild` is quick."""
    if name in __all__:
        from pybuild import build

        return getattr(build, name)
    raise AttributeError(f"module 'pybuild' has no attribute '{name}'")
