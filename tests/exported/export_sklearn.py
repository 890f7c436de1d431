"""Writes sklearn.zip beside it: models of scikit-learn as skl2onnx exports them, and
what scikit-learn itself computes.

python tests/exported/export_sklearn.py: needs scikit-learn and skl2onnx.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from skl2onnx import to_onnx
from sklearn import ensemble, linear_model, preprocessing, svm, tree
from sklearn.pipeline import make_pipeline

HERE = Path(__file__).parent
RNG = np.random.default_rng(0)
X = RNG.normal(0, 1, (200, 6)).astype(np.float32)
TWO = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
THREE = (X[:, 0] + X[:, 1] * X[:, 2] > 0.5).astype(int) + (X[:, 3] > 0.7)
NAMES = np.array(["sit", "walk", "run"])[THREE]
REAL = X[:, 0] * 2 + X[:, 1] ** 2
PAIR = np.stack([REAL, X[:, 2]], 1)
SMALL: dict[str, Any] = {"n_estimators": 4, "max_depth": 4, "random_state": 0}
MODELS: dict[str, tuple[Any, Any]] = {
    "forest_of_two": (ensemble.RandomForestClassifier(**SMALL), TWO),
    "forest_of_three": (ensemble.RandomForestClassifier(**SMALL), THREE),
    "forest_of_names": (ensemble.RandomForestClassifier(**SMALL), NAMES),
    "forest_zipped": (ensemble.RandomForestClassifier(**SMALL), THREE + 5),
    "tree": (tree.DecisionTreeClassifier(max_depth=6, random_state=0), THREE * 3 + 1),
    "boosted_two": (ensemble.GradientBoostingClassifier(**SMALL), TWO),
    "boosted_three": (ensemble.GradientBoostingClassifier(**SMALL), THREE),
    "adaboost": (ensemble.AdaBoostClassifier(n_estimators=3, random_state=0), THREE),
    "logistic_of_two": (linear_model.LogisticRegression(), TWO),
    "logistic_of_three": (linear_model.LogisticRegression(), THREE),
    "logistic_of_names": (linear_model.LogisticRegression(), NAMES),
    "linear_svc": (svm.LinearSVC(), TWO),
    "svc_rbf_two": (svm.SVC(), TWO),
    "svc_rbf_three": (svm.SVC(), THREE),
    "svc_poly": (svm.SVC(kernel="poly"), THREE),
    "svc_sigmoid": (svm.SVC(kernel="sigmoid"), TWO),
    "svc_linear": (svm.SVC(kernel="linear"), THREE),
    "forest": (ensemble.RandomForestRegressor(**SMALL), REAL),
    "forest_of_pairs": (ensemble.RandomForestRegressor(**SMALL), PAIR),
    "boosted": (ensemble.GradientBoostingRegressor(**SMALL), REAL),
    "linear": (linear_model.LinearRegression(), PAIR),
    "svr": (svm.SVR(), REAL),
    "nu_svr": (svm.NuSVR(kernel="poly"), REAL),
    "standard": (preprocessing.StandardScaler(), REAL),
    "robust_logistic": (
        make_pipeline(preprocessing.RobustScaler(), linear_model.LogisticRegression()),
        THREE,
    ),
    **{
        f"normal_{norm}": (preprocessing.Normalizer(norm), REAL)
        for norm in ("l1", "l2", "max")
    },
}  # fmt: skip


def onnx_of(name: str, model: Any) -> bytes:
    try:  # only classifiers have it
        options = {id(model): {"zipmap": False}} if name != "forest_zipped" else None
        made = to_onnx(model, X[:1], target_opset=18, options=options)
    except Exception:  # skl2onnx has no class for it
        made = to_onnx(model, X[:1], target_opset=18)
    return bytes(made.SerializeToString())


def main() -> None:
    warnings.simplefilter("ignore")
    arrays = {"x": X[:24]}
    with zipfile.ZipFile(HERE / "sklearn.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name, (model, y) in MODELS.items():
            model.fit(X, y)
            file.writestr(zipfile.ZipInfo(f"{name}.onnx"), onnx_of(name, model),
                          zipfile.ZIP_DEFLATED)  # fmt: skip
            if not hasattr(model, "predict"):
                arrays[f"{name}.0"] = model.transform(X[:24])
                continue
            given = model.predict(X[:24])
            if name.endswith("_of_names"):
                given = np.searchsorted(model.classes_, given)
            arrays[f"{name}.0"] = given
            if hasattr(model, "predict_proba"):
                arrays[f"{name}.1"] = model.predict_proba(X[:24])
        kept = io.BytesIO()
        np.savez_compressed(kept, allow_pickle=False, **arrays)
        file.writestr(zipfile.ZipInfo("values.npz"), kept.getvalue())


if __name__ == "__main__":
    main()
