"""ONNX's own tests: a slice of the cases, all of them in the sweep, and the API."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.backend.test import BackendTest

import pybuild.backend as backend
from pybuild.frontends.onnx import load
from pybuild.frontends.onnx.load import OPERATORS
from pybuild.ops.interpret import interpret
from tests.conftest import ROOT
from tests.frontends.onnx.cases import KINDS, cases, model_and_data, outcomes
from tests.frontends.onnx.table import TITLE

PAGE = ROOT / "docs" / "operators.md"
# every so many of the cases that pass are in the default run
EVERY = 24


def _rows() -> dict[tuple[str, str], tuple[int, int]]:
    """domain, operator -> cases passed, of, as docs/operators.md says"""
    found = re.findall(
        r"^\| (\w+) \| ([\w.]+) \| (\d+) \| (\d+) \|", PAGE.read_text(), re.M
    )
    return {(domain, kind): (int(a), int(b)) for kind, domain, a, b in found}


def _run(chosen: list[object]) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {"passed": [], "refused": [], "wrong": []}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in outcomes(chosen):
            said[one.result].append(f"{one.name} {one.why}")
    return said


# of operators that the slice may leave out, without code: their meaning
MEANT = (
    "test_deform_conv_with_mask_bias", "test_melweightmatrix",
    "test_deform_conv_with_multiple_offset_groups", "test_ai_onnx_ml_binarizer",
    "test_roialign_mode_max", "test_affine_grid_3d_align_corners",
    "test_rotary_embedding",
)  # fmt: skip


def _meant(name: str) -> None:
    """Errors  AssertionError where numpy alone gives something else"""
    (case,) = (case for case in cases("node") if case.name == name)
    model, ((arrays, wanted),) = model_and_data(case)
    given = dict(zip([v.name for v in model.graph.input], arrays, strict=True))
    steered = {name: given[name] for name in given if given[name].dtype == np.int64}
    steered = {} if {"T", "batch_indices"} & steered.keys() else steered
    steered |= given if name == "test_melweightmatrix" else {}
    graph = load("case.onnx", model.SerializeToString(), {}, steered)
    found = interpret(graph, {name: given[name] for name in graph.inputs})
    for value, array in zip(model.graph.output, wanted, strict=True):
        np.testing.assert_allclose(found[value.name], array, case.rtol, case.atol)


def test_a_slice_of_the_cases_is_never_wrong() -> None:
    chosen = list(cases("node"))[::EVERY]
    said = _run(chosen)
    assert not said["wrong"], "\n".join(said["wrong"])
    assert len(said["passed"]) >= 0.75 * len(chosen)
    for name in MEANT:
        _meant(name)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_all_cases_are_as_the_page_says(kind: str) -> None:
    said = _run(list(cases(kind)))
    assert not said["wrong"], "\n".join(said["wrong"])
    page = (ROOT / "docs" / "benchmarks-values.md").read_text().replace(",", "")
    section = page[page.index(f"## {TITLE}") :]
    row = re.search(rf"^\| crt {kind} \|.*\| (\d+) \| (\d+) \| 0 \|$", section, re.M)
    assert row is not None, kind
    assert (len(said["passed"]), len(said["refused"])) == tuple(map(int, row.groups()))


def test_the_page_has_every_operator_of_the_table() -> None:
    text = PAGE.read_text()
    missing = [
        kind
        for domain, kind in OPERATORS
        if f"| {kind} | {domain or 'ai.onnx'} |" not in text
    ]
    assert not missing, "python -m tests.frontends.onnx.table writes it anew"


# without a case that passes: domain, operators, the tests that compute them
OWN = (
    ("", ("MaxRoiPool", "Optional"), "test_onnx_lists.py"),
    (
        "com.microsoft",
        (
            "DequantizeLinear", "QGemm", "QLinearAdd", "QLinearAveragePool",
            "QLinearConcat", "QLinearGlobalAveragePool", "QLinearLeakyRelu",
            "QLinearMul", "QLinearSigmoid", "QLinearSoftmax", "QuantizeLinear",
        ),
        "test_onnx_quantised.py",
    ),
    ("com.microsoft", ("QLinearWhere",), "test_ort_quantiser.py"),
    ("com.microsoft", ("GatherBlockQuantized", "MatMulNBits"), "bits/test_few_bits.py"),
    (
        "com.microsoft", ("DynamicQuantizeMatMul", "MatMulIntegerToFloat"),
        "bits/test_dynamic.py",
    ),
    ("com.microsoft", ("DynamicQuantizeLSTM",), "bits/test_dynamic_lstm.py"),
    (
        "ai.onnx.ml",
        (
            "LinearClassifier", "LinearRegressor", "Normalizer", "SVMClassifier",
            "SVMRegressor", "Scaler", "TreeEnsembleClassifier",
            "TreeEnsembleRegressor",
        ),
        "classical/test_sklearn.py",
    ),
)  # fmt: skip


def test_every_operator_of_the_table_is_tested() -> None:
    """By a case that passes; those that have none by name in a test of their own."""
    rows, here = _rows(), Path(__file__).parent
    bare = {
        (domain, kind)
        for domain, kind in OPERATORS
        if not rows.get((domain or "ai.onnx", kind), (0, 0))[0]
    }
    assert bare == {(domain, kind) for domain, kinds, _ in OWN for kind in kinds}
    for _, kinds, file in OWN:
        text = (here / file).read_text()
        assert not [kind for kind in kinds if not re.search(rf'\b{kind}"', text)]


def _relu() -> object:
    value = helper.make_tensor_value_info
    boundary = (
        [value("x", TensorProto.FLOAT, [3])],
        [value("y", TensorProto.FLOAT, [3])],
    )
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", *boundary)
    return helper.make_model(graph)


@pytest.mark.parametrize("code", [backend, backend.InC])
def test_models_and_nodes_run(code: object) -> None:
    x = np.array([-1, 0, 2], np.float32)
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")
    (y,) = code.run_model(_relu(), [x])  # type: ignore[attr-defined]
    assert y.tolist() == [0, 0, 2]
    prepared = code.prepare(_relu())  # type: ignore[attr-defined]
    assert prepared.run({"x": x}).y.tolist() == prepared.run(x).y.tolist() == [0, 0, 2]
    node = helper.make_node("Sub", ["a", "b"], ["c"])
    for info in (None, [(np.float32, (3,))]):
        run = code.run_node  # type: ignore[attr-defined]
        (c,) = run(node, [x, x + 1], outputs_info=info)
        assert c.tolist() == [-1, -1, -1]


def test_the_standard_runner_takes_the_module() -> None:
    suite = BackendTest(backend, __name__)
    suite.include("test_relu_cpu$").include("test_string_concat_cpu$")
    (found,) = (case for name, case in suite.test_cases.items() if "Node" in name)
    found("test_relu_cpu").debug()
    with pytest.raises(backend.Refused, match="StringConcat is not supported"):
        backend.prepare(
            next(c.model for c in cases() if c.name == "test_string_concat")
        )
