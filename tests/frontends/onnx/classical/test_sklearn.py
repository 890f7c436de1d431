"""Models of scikit-learn as skl2onnx exports them: what ONNX Runtime gives, and what
scikit-learn computed. Made by tests/exported/export_sklearn.py.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ops.interpret import interpret
from pybuild.verify.reference import reference

ZIP = zipfile.ZipFile(Path(__file__).resolve().parents[3] / "exported" / "sklearn.zip")
MODELS = [name[:-5] for name in ZIP.namelist() if name.endswith(".onnx")]
# scikit-learn divides by the largest magnitude, ONNX by the largest value
OTHERWISE = "normal_max"
# of each kind one, as C and through LLVM
BUILT = ("forest_of_three", "boosted_two", "svc_rbf_three", "robust_logistic")
ROWS = 6
Outputs = list[Array]


@pytest.fixture(scope="module")
def values() -> Any:
    return np.load(io.BytesIO(ZIP.read("values.npz")))


def _model(name: str) -> pybuild.Model:
    return pybuild.load(ZIP.read(f"{name}.onnx"), input_dims={"X": ROWS})


def _close(have: Array, want: Array) -> None:
    assert have.shape == want.shape
    if have.dtype.kind == "f":
        np.testing.assert_allclose(have, want, 1e-4, 1e-5)
    else:
        assert (have == want).all()


@pytest.mark.parametrize("name", [name for name in MODELS if name != OTHERWISE])
def test_scikit_learn(name: str, values: Any) -> None:
    """Labels and probabilities, or numbers, of 24 rows."""
    graph = _model(name).lower()
    for first in range(0, 24, ROWS):
        part = slice(first, first + ROWS)
        found = interpret(graph, {"X": values["x"][part]})
        for number, output in enumerate(graph.outputs):
            key = f"{name}.{number}"
            if key in values.files:
                want = values[key][part]
                _close(found[output], want.reshape(found[output].shape))


@pytest.mark.parametrize("name", MODELS)
def test_onnx_runtime(name: str, values: Any, tmp_path: Path) -> None:
    """Every output, also scores that are not probabilities; labels by their numbers."""
    path = tmp_path / "m.onnx"
    path.write_bytes(ZIP.read(f"{name}.onnx"))
    graph = _model(name).lower()
    run = reference("ort", path, graph).run
    for first in range(0, 24, ROWS):
        x = {"X": values["x"][first : first + ROWS]}
        theirs, found = run(x), interpret(graph, x)
        for output in graph.outputs:
            _close(found[output], theirs[output])


@pytest.mark.parametrize("name", BUILT)
def test_both_back_ends(name: str, values: Any) -> None:
    library = _model(name).build(name="m")
    x = values["x"][:ROWS]
    want = interpret(library.plan.graph, {"X": x})
    for code in ("c", "llvm"):
        net = library.host(code)
        for output, value in net.run(X=x).items():
            _close(value, want[output])
        net.close()


def test_every_operator_is_in_a_file() -> None:
    found = set()
    for name in MODELS:
        nodes = onnx.load_from_string(ZIP.read(f"{name}.onnx")).graph.node
        found |= {node.op_type for node in nodes if node.domain == "ai.onnx.ml"}
    assert found >= {
        "LinearClassifier", "LinearRegressor", "Normalizer", "SVMClassifier",
        "SVMRegressor", "Scaler", "TreeEnsembleClassifier", "TreeEnsembleRegressor",
    }  # fmt: skip


# ---- what no exporter of these models writes ------------------------------------


def _tree(modes: tuple[str, str], values: list[float], **more: Any) -> onnx.ModelProto:
    """Node 0 compares feature 0, its second branch feature 1: leaves 1, 2, 3."""
    attrs: dict[str, Any] = {
        "nodes_treeids": [0] * 5, "nodes_nodeids": [0, 1, 2, 3, 4],
        "nodes_featureids": [0, 0, 1, 0, 0], "nodes_values": values,
        "nodes_modes": [modes[0], "LEAF", modes[1], "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 3, 0, 0], "nodes_falsenodeids": [2, 0, 4, 0, 0],
        "target_treeids": [0] * 3, "target_nodeids": [1, 3, 4],
        "target_ids": [0] * 3, "target_weights": [1.0, 2.0, 4.0], "n_targets": 1,
        **more,
    }  # fmt: skip
    node = helper.make_node(
        "TreeEnsembleRegressor", ["X"], ["y"], domain="ai.onnx.ml", **attrs
    )
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [ROWS, k])
        for n, k in (("X", 2), ("y", 1))
    ]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.mark.parametrize("mode", ["LEQ", "LT", "GTE", "GT"])
@pytest.mark.parametrize("lost", [[], [1, 0, 0, 0, 0], [0, 0, 1, 0, 0]])
def test_comparisons_and_missing_values(
    mode: str, lost: list[int], tmp_path: Path
) -> None:
    """On the bound itself, and where a feature is NaN."""
    more = {"nodes_missing_value_tracks_true": lost} if lost else {}
    word = f"BRANCH_{mode}"
    path = tmp_path / "m.onnx"
    onnx.save(_tree((word, word), [0.5, 0, -0.25, 0, 0], **more), path)
    graph = pybuild.load(path).lower()
    nan = np.nan
    rows = [[0.5, 0], [0.25, -0.25], [0.75, -0.25], [nan, 1], [0.75, nan], [nan, nan]]
    x = {"X": np.asarray(rows, np.float32)}
    theirs = reference("ort", path, graph).run(x)["y"]
    assert (interpret(graph, x)["y"] == theirs).all()


def _refused(model: onnx.ModelProto) -> str:
    with pytest.raises(BuildError) as caught:
        pybuild.load(model)
    return str(caught.value.problems[0])


def test_what_is_refused() -> None:
    place = "model.onnx: node 'y' (TreeEnsembleRegressor): "
    mixed = _refused(_tree(("BRANCH_LEQ", "BRANCH_LT"), [0.0] * 5))
    assert mixed == (
        f"{place}nodes that compare by BRANCH_LEQ, BRANCH_LT are not supported "
        "together. Hint: one of BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT"
    )
    leq = ("BRANCH_LEQ", "BRANCH_LEQ")
    circle = _refused(_tree(leq, [0.0] * 5, nodes_truenodeids=[1, 0, 2, 0, 0]))
    assert circle == f"{place}has 1 trees, but 2 roots"
    lost = _refused(_tree(leq, [0.0] * 5, nodes_truenodeids=[1, 0, 0, 0, 0]))
    assert lost == f"{place}has nodes that no root leads to"
    twice = _refused(_tree(leq, [0.0] * 5, nodes_nodeids=[0, 1, 2, 3, 3]))
    assert twice == f"{place}has 5 nodes, or two of one number"
    weight = _refused(_tree(leq, [0.0] * 5, target_nodeids=[1, 2, 4]))
    assert (
        weight == f"{place}gives a weight to a node that is not a leaf, or to no class"
    )


@pytest.mark.parametrize(
    ("feature", "what"), [(99, "compares feature 99 of"), (-1, "that there cannot be")]
)
def test_a_feature_that_the_rows_have_not(feature: int, what: str) -> None:
    model = onnx.load_from_string(ZIP.read("forest_of_three.onnx"))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "nodes_featureids":
                attribute.ints[0] = feature
    with pytest.raises(BuildError, match=what):
        pybuild.load(model.SerializeToString(), input_dims={"X": ROWS})
