"""Graph JSON with its parameters, through the whole build."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import pybuild
from pybuild.frontends import graphjson
from pybuild.ops.interpret import interpret
from tests.graphs.networks import classifier


def test_a_written_graph_builds_to_the_same_c(tmp_path: Path) -> None:
    model = classifier("tiny").model()
    text, params = graphjson.dump(model.lower())
    (tmp_path / "tiny.json").write_text(text)
    (tmp_path / "tiny.params").write_bytes(params)
    read = pybuild.load(tmp_path / "tiny.json").build(name="tiny")
    made = model.build(name="tiny")
    assert read.tables.args == made.tables.args
    assert [c.symbol for c in read.tables.constants] == [
        c.symbol for c in made.tables.constants
    ]
    image = np.random.default_rng(5).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)
    net = read.host()
    net.run(image=image)
    expected = interpret(made.plan.graph, {"image": image})
    np.testing.assert_array_equal(net.get_output("scores"), expected["scores"])
