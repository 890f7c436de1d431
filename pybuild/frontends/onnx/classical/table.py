"""Operators of ai.onnx.ml by name."""

from __future__ import annotations

from collections.abc import Callable

from pybuild.frontends.onnx.classical import linear, trees
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.reader.op import Op

_CLASSICAL: dict[str, Callable[[Flow], None]] = {
    "LinearClassifier": linear.linear_classifier,
    "LinearRegressor": linear.linear_regressor,
    "Normalizer": linear.normalizer,
    "SVMClassifier": linear.svm_classifier,
    "SVMRegressor": linear.svm_regressor,
    "Scaler": linear.scaler,
    "TreeEnsembleClassifier": trees.tree_classifier,
    "TreeEnsembleRegressor": trees.tree_regressor,
}


def _handler(of: Callable[[Flow], None]) -> Callable[[Draft, Op], None]:
    return lambda draft, op: of(Flow(draft, op))


CLASSICAL: dict[tuple[str, str], Callable[[Draft, Op], None]] = {
    ("ai.onnx.ml", kind): _handler(handler) for kind, handler in _CLASSICAL.items()
}
