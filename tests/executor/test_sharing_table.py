"""The table of docs/graph-executor.md: what share_params does for each pair of states,
of modules on this machine and on a board."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pybuild as tvm
from pybuild import graph_executor
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.graph_executor import GraphModule
from pybuild.host.abi import CrtError
from pybuild.library import Library
from pybuild.ops.interpret import interpret
from pybuild.rpc.remote import Wired
from tests.executor.test_graph_executor import image
from tests.graphs.networks import classifier
from tests.rpc.lines import board

PAGE = Path(__file__).resolve().parents[2] / "docs" / "graph-executor.md"
STATES = ["unset", "set", "shared", "image", "closed", "other library", "other plan"]
TAKEN = "the donor's"
ERRORS = {
    "`CRT_ERR_UNBOUND`": (CrtError, "CRT_ERR_UNBOUND"),
    "`CRT_ERR_LAYOUT`": (CrtError, "CRT_ERR_LAYOUT"),
    "`ValueError`": (ValueError, "the instance is closed"),
}


def table() -> dict[tuple[str, str], str]:
    """What the page says, by donor and sharer."""
    lines = PAGE.read_text().partition("| donor | sharer: ")[2].splitlines()
    heads = [word.strip() for word in lines[0].strip(" |").split("|")]
    rows = [[w.strip() for w in line.strip(" |").split("|")] for line in lines[2:9]]
    return {
        (row[0], head): cell
        for row in rows
        for head, cell in zip(heads, row[1:], strict=True)
    }


def test_the_page_has_49_cells() -> None:
    cells = table()
    assert [*cells] == list(itertools.product(STATES, STATES))
    assert {*cells.values()} == {TAKEN, *ERRORS}


@functools.cache
def weights(seed: int) -> dict[str, Array]:
    """Of the same scales; seed 0: as the library was built."""
    graph, chance = classifier("tiny").graph(), np.random.default_rng(seed)
    made = {n: v for n, v in graph.constants.items() if v.ndim}
    if seed:
        for name in (n for n in made if n.endswith("/w")):
            made[name] = chance.permuted(made[name], axis=-1)
    return made


@functools.cache
def library(seed: int = 0, optimise: str = "speed") -> Library:
    model = classifier("tiny").model().with_weights(weights(seed))
    model = model.with_parameters("replaceable")
    how = {"target": "generic", "input": "keep", "plan": "whole"}
    return model.build(optimise=optimise, **how)


@functools.cache
def wanted(seed: int) -> Array:
    return interpret(library(seed).plan.graph, {"image": image()})["scores"]


def scores(made: GraphModule) -> Array:
    made.run(image=image())
    return made.get_output(0).numpy()


class Place:
    """Where modules are made: here, or on a board with the library in its flash."""

    def __init__(self, remote: Wired | None) -> None:
        self.remote = remote
        self.device = remote.device(0) if remote else tvm.cpu(0)

    def create(self, made: Library) -> GraphModule:
        text, code = made.get_graph_json(), made.get_lib()
        return graph_executor.create(text, code, self.device)

    def module(self, state: str, seed: int) -> GraphModule:
        """In one of the states, with the weights of a seed."""
        other = {"other library": seed}.get(state, 0)
        size = "size" if state == "other plan" else "speed"
        source = library(other, size)
        if state == "other library":
            return GraphModule(source["default"](self.device))
        made = self.create(source)
        if state == "shared":
            donor = self.module("set", seed)
            made.share_params(donor)
            donor.close()
        elif state == "image":
            made.load_params(source.image(weights(seed)))
        elif state != "unset":
            made.load_params(tvm.runtime.save_param_dict(weights(seed)))
        if state == "closed":
            made.close()
        return made


@pytest.fixture(scope="module", params=["here", "on a board"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    yield Place(None if request.param == "here" else board(library()))


def is_as_before(made: GraphModule, state: str, seed: int) -> None:
    if state == "unset":
        with pytest.raises(CrtError, match="CRT_ERR_UNBOUND"):
            made.run(image=image())
    elif state == "closed":
        with pytest.raises(ValueError, match="the instance is closed"):
            made.run(image=image())
    else:
        np.testing.assert_array_equal(scores(made), wanted(seed))


@pytest.mark.parametrize(("donor", "sharer"), [*itertools.product(STATES, STATES)])
def test_each_cell(place: Place, donor: str, sharer: str) -> None:
    if place.remote and "other plan" in (donor, sharer):
        with pytest.raises(BuildError, match="the board has the library"):
            place.module("other plan", 1)
        return
    assert not np.array_equal(wanted(1), wanted(2))
    cell = table()[donor, sharer]
    gives, takes = place.module(donor, 1), place.module(sharer, 2)
    if cell in ERRORS:
        kind, said = ERRORS[cell]
        with pytest.raises(kind, match=said):
            takes.share_params(gives)
        is_as_before(takes, sharer, 2)
        is_as_before(gives, donor, 1)
        return
    takes.share_params(gives)
    is_as_before(takes, "set", 1)
    is_as_before(gives, donor, 1)
    if not place.remote:
        slots = [slot.name for slot in library().slots]
        assert all(
            takes.net.parameter_address(s) == gives.net.parameter_address(s)
            for s in slots
        )
    gives.set_input(**weights(2))  # of its own from here on
    is_as_before(gives, donor, 2)
    is_as_before(takes, "set", 1)
    gives.close()
    is_as_before(takes, "set", 1)


def test_a_donor_is_named_by_its_weights() -> None:
    """A message says which tensor of the donor is lacking, or has another form."""
    here = Place(None)
    with pytest.raises(CrtError, match="'depth/b' of the other module"):
        here.module("set", 1).share_params(here.module("unset", 1))
    with pytest.raises(CrtError, match=re.escape("'stem/b', of stem/b, stem/w")):
        here.module("set", 1).share_params(here.module("other plan", 1))
