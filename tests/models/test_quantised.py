"""Quantised after training, here and by onnxruntime.quantization: as right as that."""

from __future__ import annotations

import pytest

from tests import quantising
from tests.quantising import METHODS
from tests.toolchains import require_module


@pytest.mark.parametrize("method", METHODS)
def test_digits_beside_onnxruntime(method: str) -> None:
    require_module("onnxruntime")
    chosen = quantising.digits()
    (mine, whole), other = (
        f(chosen, method) for f in (quantising.ours, quantising.theirs)
    )
    assert mine.right >= other.right
    assert mine.right >= whole - 0.005 * len(chosen.test["labels"])
    assert mine.error < other.error


@pytest.mark.sweep
@pytest.mark.parametrize("method", METHODS)
def test_scenes_beside_onnxruntime(method: str) -> None:
    """As right up to chance: each differs from the float network in some 110 scenes."""
    require_module("onnxruntime")
    chosen = quantising.many_scenes()
    (mine, _), other = (f(chosen, method) for f in (quantising.ours, quantising.theirs))
    assert mine.right >= other.right - 0.0005 * len(chosen.test["labels"])
    assert mine.error < 0.9 * other.error
