"""Inputs that come in rows: the bits of a whole input, in rings, however many rows come
at once; and what does not go with that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.host.abi import CrtError
from pybuild.host.native import Net
from pybuild.host.trace import recorded
from pybuild.ir.graph import Graph
from pybuild.library import Library
from pybuild.verify.samples import samples
from tests.conftest import model_path
from tests.emit.test_generated_c import sanitized
from tests.graphs.networks import classifier
from tests.graphs.rows import model_of, row_graphs, two_inputs
from tests.plan.test_rows import all_of, inputs_of, must_equal, quick
from tests.toolchains import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"


def pushed(graph: Graph) -> Library | None:
    """Every input in rows; None where the first layers do not read it so."""
    model = model_of(graph)
    try:
        return model.build(push=graph.inputs)
    except BuildError as error:
        assert "is not read row by row" in str(error)
        return None


def in_pieces(net: Net, name: str, value: Array, sizes: list[int]) -> None:
    """All rows, so many at a time in turn; the last piece as many as are left."""
    (rows,) = net.pushed.rows.values()
    each = value.reshape(rows, -1)
    at = turn = 0
    while at < rows:
        count = min(sizes[turn % len(sizes)], rows - at)
        net.push_rows(name, each[at : at + count])
        at, turn = at + count, turn + 1


def gives_the_bits_of_whole_inputs(graph: Graph) -> None:
    made = pushed(graph)
    if made is None:
        return
    whole = model_of(graph).build().host()
    values = inputs_of(graph)
    whole.run(**values)
    want = all_of(whole)
    net = made.host()
    for poison in (0, 0x7F):
        for piece in net.memory:
            piece[:] = poison
        net.run(**values)
        must_equal(all_of(net), want)


@given(row_graphs())
@quick(8)
def test_random_graphs_give_the_bits_of_whole_inputs(graph: Graph) -> None:
    gives_the_bits_of_whole_inputs(graph)


@pytest.mark.sweep
@given(row_graphs())
@quick(200)
def test_many_graphs_give_the_bits_of_whole_inputs(graph: Graph) -> None:
    gives_the_bits_of_whole_inputs(graph)


@pytest.mark.parametrize(
    "network",
    ["vww", *(pytest.param(name, marks=pytest.mark.sweep) for name in ("kws", "ic"))],
)
def test_real_networks_in_pieces_of_any_size(network: str) -> None:
    model = pybuild.load(model_path(f"{network}_int8.tflite"))
    (name,) = model.graph.inputs
    whole, made = model.build().host(), model.build(push=[name])
    net = made.host()
    for given_, sizes in zip(
        samples(made.plan.graph, 3), ([1], [2, 1, 5], [1000]), strict=True
    ):
        whole.run(**given_.inputs)
        in_pieces(net, name, given_.inputs[name], sizes)
        must_equal(all_of(net), all_of(whole))
    ring = made.plan.rings[name]
    assert ring.rows * ring.pitch < made.plan.graph.tensor(name).bytes


def test_the_network_goes_as_far_as_it_can() -> None:
    """The rows that it asks for are those without which nothing is computed."""
    made = classifier("net").model("scores").build(push=["image"])
    net, seen = made.host(), list[int]()
    image = np.arange(192, dtype=np.int16).astype(np.int8).reshape(1, 8, 8, 3)

    def look(context: object, step: int, row: int, count: int, rows: object) -> int:
        seen.append(step)
        return 0

    at = 0
    with net.hooked(look):
        while at < 8:
            want = net.rows_wanted("image")
            for row in range(at, at + want - 1):
                before = len(seen)
                net.push_rows("image", image[0, row])
                assert len(seen) == before
            net.push_rows("image", image[0, at + want - 1])
            assert seen
            at += want
    assert at == 8
    want_bits = classifier("net").model("scores").build().host()(image=image)
    np.testing.assert_array_equal(net.get_output("scores"), want_bits["scores"])


def test_what_does_not_go_with_rows() -> None:
    net = classifier("net").model("scores").build(push=["image"]).host()
    image = np.zeros((1, 8, 8, 3), np.int8)
    with pytest.raises(CrtError, match="CRT_ERR_INPUT_MISSING"):
        net.run()
    with pytest.raises(CrtError, match="CRT_ERR_ROWS"):
        net.push_rows("image", np.zeros((9, 8, 3), np.int8))
    net.push_rows("image", image[0, :3])
    with pytest.raises(CrtError, match="CRT_ERR_ROWS"):
        net.push_rows("image", np.zeros((6, 8, 3), np.int8))
    with pytest.raises(CrtError, match="CRT_ERR_INPUT_MISSING"):
        net.run()
    net.push_rows("image", image[0, 3:])
    net.run()  # has nothing left to do
    with pytest.raises(ValueError, match=r"rows of 'image' are int8\[n,24\]"):
        net.push_rows("image", np.zeros((1, 7), np.int8))
    with pytest.raises(CrtError, match="CRT_ERR_UNBOUND"):
        net.borrow_input("image")
    net.bind_input("image", image)
    with pytest.raises(CrtError, match="CRT_ERR_PUSHED"):
        net.push_rows("image", image[0, :1])


@pytest.mark.parametrize("inputs", ["a", "b", "ab", "ba", "bc", "cab"])
def test_several_inputs_come_in_turn(inputs: str) -> None:
    """Each row is asked for when it is needed, and no other input's is taken."""
    graph = two_inputs()
    values = inputs_of(graph)
    whole = model_of(graph).build(plan="whole").host()
    whole.run(**values)
    net = model_of(graph).build(push=list(inputs)).host()
    net.run(**values)
    must_equal(all_of(net), all_of(whole))
    net.memory[0][:] = 0
    for name in set(graph.inputs) - set(inputs):
        net.set_input(name, values[name])
    at = dict.fromkeys(inputs, 0)
    while any(at[n] < graph.tensor(n).shape[1] for n in at):
        ((name, want),) = ((n, w) for n in inputs if (w := net.rows_wanted(n)))
        for other in set(inputs) - {name}:
            with pytest.raises(CrtError, match="CRT_ERR_ROWS"):
                net.push_rows(other, values[other][0, :1])
        net.push_rows(name, values[name][0, at[name] : at[name] + want])
        at[name] += want
    must_equal(all_of(net), all_of(whole))


def test_an_input_that_is_read_whole_cannot_be_pushed() -> None:
    model = pybuild.load(model_path("ad_int8.tflite"))
    with pytest.raises(BuildError, match="is not read row by row: its first layer is"):
        model.build(push=model.graph.inputs)
    with pytest.raises(BuildError, match="--push: there is no 'nothing'"):
        model.build(push=["nothing"])


def test_every_layer_is_seen_on_the_same_plan() -> None:
    """What crt check and debug look at."""
    model = pybuild.load(DIGITS)
    made = model.build(push=["image"])
    (given_,) = samples(made.plan.graph, 1)
    want = recorded(model.build().host(), given_.inputs)
    have = recorded(made.host(), given_.inputs)
    assert want.keys() == have.keys()
    for name, value in want.items():
        np.testing.assert_array_equal(have[name], value)


def test_the_tree_compiles_and_its_selftest_pushes(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    model_of(two_inputs()).build(folder, name="d", push=["a", "b"])
    header = (folder / "d.h").read_text()
    for line in ("#define D_B_INPUT 2u", "#define D_B_ROWS 17u",
                 "#define D_B_ROW_LEN 15u"):  # fmt: skip
        assert line in header
    assert "d_set_a" not in header and "d_bind_b" not in header
    assert (folder / "crt" / "src" / "push.c").is_file()
    assert sanitized(folder).startswith("d: self-test: no error")
