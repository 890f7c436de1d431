"""A compiled model. Knows no compiler."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Compiled:
    """A compiled model, for any number of instances.

    library  a shared library with crt
    model    the address of its struct crt_model
    keep     what must stay for it to be there
    """

    library: Path
    model: int
    keep: object
