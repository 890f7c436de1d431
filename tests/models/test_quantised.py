"""Quantised after training, here and by onnxruntime.quantization: never less right."""

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
def test_scenes_beside_onnxruntime() -> None:
    """Each with the calibration that serves it best."""
    require_module("onnxruntime")
    chosen = quantising.scenes()
    mine = max(quantising.ours(chosen, method)[0].right for method in METHODS)
    assert mine >= max(quantising.theirs(chosen, method).right for method in METHODS)
