"""Tensors whose names are those of parameters and attributes here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild import debug_executor, graph_executor
from pybuild.library import Library

# a name of each parameter that functions with names of inputs have
NAMES = ["self", "values", "inputs", "key", "value", "copy", "more", "given", "net"]
X = {name: np.full((1, 2), n, np.float32) for n, name in enumerate(NAMES)}
WANTED = np.full((1, 2), sum(range(len(NAMES))), np.float32)


@pytest.fixture(scope="module")
def library() -> Library:
    b = pybuild.GraphBuilder("names")
    total = b.input(NAMES[0], (1, 2))
    for name in NAMES[1:]:
        total = b.op("add", total, b.input(name, (1, 2)), clamp=[None, None])
    b.output(total, "outputs")
    return pybuild.build(b.build(), input="keep")


def test_instances(library: Library) -> None:
    net = library.host("llvm")
    for found in (net.run(**X), net(**X), net.run(X)):
        np.testing.assert_array_equal(found["outputs"], WANTED)


def test_graph_executors(library: Library, tmp_path: Path) -> None:
    plain = graph_executor.GraphModule(library["default"](pybuild.cpu(0)))
    plain.run(**X)
    np.testing.assert_array_equal(plain.get_output("outputs").numpy(), WANTED)
    plain.set_input("key", np.full((1, 2), 103, np.float32))
    plain.run(**{name: X[name] for name in ("value", "self", "copy")})
    np.testing.assert_array_equal(plain.get_output("outputs").numpy(), WANTED + 100)
    text, code = library.get_graph_json(), library.get_lib()
    debug = debug_executor.create(text, code, pybuild.cpu(0), tmp_path)
    debug.profile(**X)
    np.testing.assert_array_equal(debug.get_output("outputs"), WANTED)
