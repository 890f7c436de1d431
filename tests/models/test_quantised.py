"""Quantised after training, here and by onnxruntime.quantization: never less right."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest

from tests import quantising
from tests.quantising import METHODS, Network

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None, reason="needs onnxruntime"
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("network", [quantising.digits])
def test_beside_onnxruntime(network: Callable[[], Network], method: str) -> None:
    chosen = network()
    (mine, whole), other = (
        f(chosen, method) for f in (quantising.ours, quantising.theirs)
    )
    assert mine.right >= other.right
    assert mine.right >= whole - 0.005 * len(chosen.test["labels"])
    assert mine.error < other.error
