"""Replacements for tvm.testing."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_allclose(
    actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7
) -> None:
    """Errors  AssertionError for another shape, or values further apart than
    atol + rtol * abs(desired)"""
    have, want = np.asarray(actual), np.asarray(desired)
    np.testing.assert_equal(have.shape, want.shape)
    np.testing.assert_allclose(have, want, rtol=rtol, atol=atol)
