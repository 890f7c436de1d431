"""Each pass alone: what it makes of a small graph, and that it means the same."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild import passes
from pybuild.errors import BuildError
from pybuild.ir.graph import Quant
from pybuild.ops.interpret import interpret
from pybuild.passes import PIPELINE, PassOptions
from pybuild.passes.dead import remove_dead
from pybuild.passes.fold import fold_constants
from pybuild.passes.layout import set_layout
from pybuild.passes.legalise import own_outputs, set_rounding
from pybuild.passes.moves.reshape import merge_reshapes, sink_reshapes
from pybuild.passes.noop import remove_noops
from tests.passes.passes_graph import RELU, F, Q, Small, after, conv, inputs_of, ops

TYPES = "float32[1,4,4,2]"


# ---- fold_constants, remove_dead -----------------------------------------------------


def test_constants_are_folded() -> None:
    g = Small()
    g.input("x", 2, 3)
    g.constant("a", np.arange(3, dtype=F))
    g.node("mul", "a a", "squares")
    g.node("reshape", "squares", "row", shape=(1, 3))
    g.node("add", "x row", "y")
    made = after(fold_constants, g.graph("y"))
    assert made.dump() == (
        "graph small\ninput x: float32[2,3]\noutput y: float32[2,3]\n"
        "y: float32[2,3] = add(x, const row) \n".replace(" \n", "\n")
    )
    assert made.constants["row"].tolist() == [[0, 1, 4]]
    assert set(made.constants) == {"row"}


def test_an_output_may_become_a_constant() -> None:
    g = Small()
    g.input("x", 1)
    g.constant("a", np.arange(3, dtype=F))
    g.node("tanh", "a", "y")
    made = after(fold_constants, g.graph("y"))
    assert ops(made) == [] and "y" in made.constants


def test_dead_nodes_go() -> None:
    g = Small()
    g.input("x", 2, 3)
    g.input("unread", 2)
    g.node("tanh", "x", "y")
    g.node("tanh", "y", "dead")
    g.node("tanh", "dead", "dead_too")
    made = after(remove_dead, g.graph("y"))
    assert ops(made) == ["tanh"]
    assert set(made.tensors) == {"x", "unread", "y"}


# ---- remove_noops --------------------------------------------------------------------

NOOPS = {
    "copy": {},
    "reshape": {"shape": (1, 4, 4, 2)},
    "transpose": {"perm": (0, 1, 2, 3)},
    "slice": {"begin": (0,) * 4, "end": (1, 4, 4, 2), "strides": (1,) * 4},
    "pad": {"pads": ((0, 0),) * 4, "value": 0.0},
    "concat": {"axis": 1},
    "clip": {"clamp": (None, None)},
}


@pytest.mark.parametrize("op", NOOPS)
def test_noops_go(op: str) -> None:
    g = Small()
    g.input("x", 1, 4, 4, 2)
    g.node("tanh", "x", "t")
    g.node(op, "t", "same", **NOOPS[op])  # type: ignore[arg-type]
    g.node("logistic", "same", "y")
    made = after(remove_noops, g.graph("y"))
    assert made.dump() == (
        f"graph small\ninput x: {TYPES}\noutput y: {TYPES}\n"
        f"t: {TYPES} = tanh(x)\ny: {TYPES} = logistic(t)\n"
    )


def test_an_output_of_a_noop_keeps_its_name() -> None:
    g = Small()
    g.input("x", 1, 4, 4, 2)
    g.node("tanh", "x", "t")
    g.node("logistic", "t", "z")
    g.node("copy", "t", "y")
    made = after(remove_noops, g.graph("z", "y"))
    assert made.dump().splitlines()[-2:] == [
        f"y: {TYPES} = tanh(x)", f"z: {TYPES} = logistic(y)",
    ]  # fmt: skip


def test_an_output_that_is_an_input_or_output_stays_a_copy() -> None:
    g = Small()
    g.input("x", 2)
    g.node("reshape", "x", "y", shape=(2,))
    g.node("copy", "y", "z")
    made = after(remove_noops, g.graph("y", "z"))
    assert [(n.op, n.inputs, n.output) for n in made.nodes] == [
        ("copy", ("x",), "y"), ("copy", ("y",), "z"),
    ]  # fmt: skip


def test_a_requantisation_to_the_same_is_a_noop() -> None:
    g = Small()
    g.input("x", 2, 3, quant=Q)
    g.node("quantize", "x", "same", quant=Q)
    g.node("clip", "same", "wide", clamp=(-100.0, 100.0))
    g.node("quantize", "wide", "y", quant=Quant((0.1,), (0,)))
    assert ops(after(remove_noops, g.graph("y"))) == ["quantize"]


def test_what_changes_something_stays() -> None:
    g = Small()
    g.input("x", 2, 3, quant=Q)
    g.node("clip", "x", "c", clamp=RELU)
    g.node("transpose", "c", "t", perm=(1, 0))
    g.node("reshape", "t", "r", shape=(6,))
    g.node("slice", "r", "y", begin=(5,), end=(-1,), strides=(-1,))
    assert len(after(remove_noops, g.graph("y")).nodes) == 4


# ---- reshapes ------------------------------------------------------------------------


def test_reshapes_merge() -> None:
    g = Small()
    g.input("x", 2, 6)
    g.node("reshape", "x", "a", shape=(12,))
    g.node("reshape", "a", "y", shape=(3, 4))
    made = after(merge_reshapes, g.graph("y", "a"))
    assert [node.inputs for node in made.nodes] == [("x",), ("x",)]


def test_reshapes_sink_below_what_they_do_not_matter_to() -> None:
    """As between two 1-D convolutions: bias, activation and residual between."""
    g = Small()
    g.input("x", 1, 5, 1, 2)
    g.weights("c", 1, 2)
    g.node("reshape", "x", "a", shape=(1, 5, 2))
    g.node("add", "a c", "b")
    g.node("clip", "b", "d", clamp=RELU)
    g.node("mul", "d a", "e")
    g.node("reshape", "e", "f", shape=(1, 5, 1, 2))
    conv(g, "f", "y")
    made = after(lambda graph: sink_reshapes(graph), g.graph("y"))
    assert ops(made) == ["add", "clip", "mul", "reshape", "conv2d"]
    assert made.nodes[0].inputs[0] == "x"


def test_a_reshape_stays_above_what_it_matters_to() -> None:
    g = Small()
    g.input("x", 2, 3)
    g.weights("c", 2)
    g.node("reshape", "x", "a", shape=(3, 2))
    g.node("add", "a c", "y")
    assert ops(after(sink_reshapes, g.graph("y"))) == ["reshape", "add"]


# ---- set_layout ----------------------------------------------------------------------


def planes() -> Small:
    """An operator on rows behind transposes, as from ONNX."""
    g = Small()
    g.input("x", 1, 2, 4, 5)
    g.node("tanh", "x", "t")
    g.node("transpose", "t", "rows", perm=(0, 2, 3, 1))
    conv(g, "rows", "c")
    g.node("transpose", "c", "y", perm=(0, 3, 1, 2))
    return g


def test_layout_changes_both_ends() -> None:
    graph = planes().graph("y")
    made = set_layout(graph, {"x": "nhwc", "y": "nhwc"})
    assert made.tensor("x").shape == (1, 4, 5, 2)
    assert made.tensor("y").shape == (1, 4, 5, 3)
    values = inputs_of(graph)
    rows = {"x": np.ascontiguousarray(values["x"].transpose(0, 2, 3, 1))}
    want = interpret(graph, values)["y"].transpose(0, 2, 3, 1)
    assert np.array_equal(interpret(made, rows)["y"], want)
    assert ops(passes.run(graph, PassOptions("onnx", {"x": "nhwc", "y": "nhwc"}))) == [
        "tanh", "conv2d",
    ]  # fmt: skip


def test_layout_that_is_there_already_changes_nothing() -> None:
    graph = planes().graph("y")
    assert set_layout(graph, {"x": "nchw", "y": "nchw"}) is graph


def test_wrong_layouts_are_refused_together() -> None:
    g = planes()
    g.input("flat", 3)
    with pytest.raises(BuildError) as caught:
        set_layout(g.graph("y"), {"z": "nhwc", "x": "nwhc", "flat": "nhwc"})
    assert [str(p) for p in caught.value.problems] == [
        "--layout: the model has no input or output 'z'. Hint: one of x, flat, y",
        "--layout: 'nwhc' is unknown. Hint: did you mean 'nhwc'? one of nchw, nhwc, "
        "nhcw",
        "--layout: 'flat' of shape [3] has no channels to move",
    ]


# ---- legalise ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "dense", "rest"),
    [
        ("litert", "away", "double"), ("tflm", "double", "double"),
        ("single", "single", "single"), ("onnx", "even", "even"),
    ],
)  # fmt: skip
def test_rounding(option: str, dense: str, rest: str) -> None:
    g = Small()
    g.input("x", 2, 4)
    g.node("quantize", "x", "q", quant=Q)
    w = np.arange(12, dtype=np.int8).reshape(3, 4)
    g.constant("w", w, Quant((0.1,), (0,)))
    g.constant("v", w.copy(), Quant((0.1, 0.2, 0.3), (0,), 0))
    g.node("dense", "q w", "a", quant=Q)
    g.node("dense", "q v", "b", quant=Q)
    g.node("add", "a b", "c", quant=Q)
    g.node("dequantize", "c", "y")
    g.node("tanh", "y", "z")
    made = set_rounding(g.graph("z"), option)
    said = [node.attrs.get("rounding") for node in made.nodes]
    assert said == [rest, dense, dense, rest, None, None]


def test_outputs_are_tensors_of_their_own() -> None:
    g = Small()
    g.input("x", 2)
    g.constant("k", np.ones(3, F))
    g.node("tanh", "x", "y")
    graph = g.graph("x", "k", "y", "y")
    made = own_outputs(graph)
    assert made.outputs == ("x.copy", "k", "y", "y.copy")
    assert ops(made) == ["tanh", "copy", "copy", "copy"]
    values = inputs_of(graph)
    assert np.array_equal(interpret(made, values)["x.copy"], values["x"])


# ---- the pipeline --------------------------------------------------------------------


def test_every_pass_is_in_the_pipeline() -> None:
    names = [name for name, _ in PIPELINE]
    assert names[-7:] == [
        "settle_channels", "drop_constant_channels", "drop_outside_taps",
        "narrow_weights", "narrow_tables", "roll",
        "own_outputs",
    ]  # fmt: skip
    assert {
        "fold_constants", "use_tables", "integer_arithmetic", "fuse_batch_norm",
        "fuse_pad", "fuse_activation", "fold_transposes", "remove_noops",
        "merge_reshapes", "sink_reshapes", "remove_dead", "set_layout",
    } <= set(names)  # fmt: skip


def test_a_graph_that_is_wrong_is_refused() -> None:
    g = Small()
    g.input("x", 2)
    g.node("tanh", "x", "y")
    with pytest.raises(BuildError, match="never computed"):
        passes.run(g.graph("y", "nothing"), PassOptions())
