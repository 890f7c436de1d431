"""Features with this machine's logarithm, which the bands of pymicro-features have."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys

import numpy as np
import pytest

from pybuild.dtype import Array


@pytest.fixture
def bands_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As tests/features/test_micro_frontend.py: its C library may round otherwise."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.log1pf.restype, library.log1pf.argtypes = ctypes.c_float, [ctypes.c_float]

    def log1p(x: Array) -> Array:
        return np.array([library.log1pf(v) for v in x], np.float32)

    monkeypatch.setattr(sys.modules["pybuild.features.micro_frontend"], "_log1p", log1p)
