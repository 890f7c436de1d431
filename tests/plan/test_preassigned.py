"""Plans that keep to the storage of a graph JSON file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pybuild
from pybuild import build
from pybuild.errors import BuildError
from pybuild.frontends import graphjson
from pybuild.ops.interpret import interpret
from pybuild.plan.plan import Plan
from tests.frontends.graphjson.tvm_graphs import call, duplex, graph, null

F = np.float32
LIBRARY = pybuild.functions(
    pybuild.function("elemwise_add", op="add"),
    pybuild.function("elemwise_sub", op="sub"),
    pybuild.function("relu", op="clip", clamp=(0.0, None)),
)


def plan(top: dict[str, Any], storage: str = "given") -> Plan:
    return build(json.dumps(top), functions=LIBRARY, storage=storage).plan


def chain(*blocks: int, shapes: list[list[int]] | None = None) -> dict[str, Any]:
    """x -> relu -> relu -> ..., each value in one of the blocks."""
    count = len(blocks)
    nodes = [null("x")]
    nodes += [call(f"r{i}", "relu", [[i, 0]]) for i in range(count - 1)]
    shapes = shapes or [[8]] * count
    return graph(nodes, [0], [[count - 1, 0]], shapes, storage=list(blocks))


def test_the_arena_is_the_sum_of_the_blocks() -> None:
    top = duplex(devices=False)
    assert plan(top).arena_bytes == 8 * 16
    assert plan(top, "planned").arena_bytes < 8 * 16
    places = plan(top).places
    assert places["add1"].home == places["copy2"].home
    homes = [places[n].home for n in ("A", "B", "C", "D", "add1", "copy1", "sub")]
    assert len({*homes, places["add2"].home}) == 8


def test_a_block_is_as_large_as_its_largest_tensor() -> None:
    """Whichever comes first: the second and the fourth share, 4 and 16 floats."""
    nodes = [null("x"), call("a", "two", [[0, 0]]), call("b", "two", [[1, 0]])]
    nodes.append(call("c", "two", [[2, 0]]))
    nothing = pybuild.function("two", loop=_touch(), arguments=())
    for shapes in ([[8], [4], [24], [16]], [[8], [16], [24], [4]]):
        top = graph(nodes, [0], [[3, 0]], shapes, storage=[0, 1, 2, 1])
        made = build(json.dumps(top), functions=nothing, storage="given").plan
        assert made.arena_bytes == 4 * (8 + 16 + 24)
        assert made.places["a"].home == made.places["c"].home


def _touch() -> Any:
    from pybuild.ir.loop import FLOAT32, load
    from pybuild.kernels.base.builder import Builder

    k = Builder("touch")
    y, x = k.row("y", 0, FLOAT32, writable=True), k.row("x", 1, FLOAT32)
    k.store(y, 0, load(x))
    return k.finish()


def test_nodes_are_not_fused_nor_put_in_place() -> None:
    """Fusing would let a value be read after the file lets its block go."""
    made = plan(chain(0, 1, 2, 1, 2))
    assert [step.node.name for step in made.steps] == ["r0", "r1", "r2", "r3"]
    assert made.arena_bytes == 3 * 32
    homes = {n: p.home for n, p in made.places.items()}
    assert homes["r0"] == homes["r2"] != homes["r1"] == homes["r3"]
    assert plan(chain(0, 1, 2, 1, 2), "planned").arena_bytes == 32


@pytest.mark.parametrize("missing", ["absent", "free", "ours"])
def test_without_storage_the_plan_is_ours(missing: str) -> None:
    top = chain(0, 1, 2, 1, 2)
    if missing == "absent":
        del top["attrs"]["storage_id"]
    elif missing == "free":
        top["attrs"]["storage_id"][1] = [-1] * 5
    else:
        del top["attrs"]["storage_id"]
        made = graphjson.load("c.json", json.dumps(top).encode(), None, LIBRARY)
        top = json.loads(graphjson.dump(made)[0])
        assert top["attrs"]["storage_id"][1] == [0, 1, 2, 3, 4]
    assert plan(top).arena_bytes == plan(chain(0, 1, 2, 1, 2), "planned").arena_bytes


def test_some_values_without_a_block_are_placed_beside() -> None:
    made = plan(chain(0, -1, 2, -1, 2))
    assert made.arena_bytes == 3 * 32
    homes = {n: p.home for n, p in made.places.items()}
    assert homes["r1"] == homes["r3"]


def test_given_storage_comes_back() -> None:
    top = chain(7, 1, 2, 1, 2)
    made = graphjson.load("c.json", json.dumps(top).encode(), None, LIBRARY)
    text, params = graphjson.dump(made)
    assert json.loads(text)["attrs"]["storage_id"][1] == [7, 1, 2, 1, 2]
    assert graphjson.load("c.json", text.encode(), params) == made


def test_a_view_that_cannot_be_is_copied_beside() -> None:
    """An input and an output are bound apart, though the file has them in one."""
    nodes = [null("x"), call("y", "__nop", [[0, 0]])]
    top = graph(nodes, [0], [[1, 0]], [[2, 3], [6]], storage=[0, 0])
    library = build(json.dumps(top), storage="given")
    assert library.plan.arena_bytes == 48
    net = library.host()
    x = np.arange(6, dtype=F).reshape(2, 3)
    net.run(x=x)
    assert net.get_output("y").tolist() == list(range(6))


STORAGE_ERRORS: list[tuple[dict[str, Any], str]] = [
    (chain(0, 1, 1),
     "node 'r1' (relu): writes over 'r0' (storage 1), which 'r1' reads"),
    (chain(0, 1, 0), "node 'r1' (relu): writes over 'x' (storage 0), an input"),
    ({"late": ["x"], **chain(0, 1, 0)},
     "node 'r1' (relu): writes over 'x' (storage 0), an input that is bound late"),
    ({"devices": [0, 0, 1], **chain(0, 1, 2)},
     "node 'r1' (clip): is on device 1, but reads 'r0', which is on device 0. "
     "Hint: put a node with func_name \"__copy\" between them"),
    ({"devices": [0, 0, 1, 1], **chain(0, 1, 2, 1)},
     "node 'r2' (relu): shares storage 1 with 'r0', on device 1 and 0"),
    (graph([null("x"), call("v", "__nop", [[0, 0]])], [0], [[1, 0]], [[4], [2, 2]],
           storage=[0, 1]),
     "node 'v' (__nop): shows 'x' of storage 0, but lies in storage 1"),
    (graph([null("x"), call("v", "__nop", [[0, 0]])], [0], [[1, 0]], [[4], [2, 3]],
           storage=[0, 0]), "node 'v' (__nop): shows 'x', 16 bytes, as 24 bytes"),
    (graph([null("x"), call("a", "relu", [[0, 0]]), call("v", "__nop", [[1, 0]]),
            call("b", "relu", [[0, 0]]), call("c", "elemwise_add", [[2, 0], [3, 0]])],
           [0], [[4, 0]], [[4]] * 5, storage=[0, 1, -1, 1, 2]),
     "node 'b' (relu): writes over 'a' (storage 1), which 'c' reads"),
]  # fmt: skip


@pytest.mark.parametrize(("top", "what"), STORAGE_ERRORS)
def test_storage_that_cannot_be(top: dict[str, Any], what: str) -> None:
    top = json.loads(json.dumps(top))
    if "late" in top:
        top["attrs"]["lazy_init_input"] = ["list_str", top.pop("late")]
    if "devices" in top:
        top["attrs"]["device_index"] = ["list_int", top.pop("devices")]
    data = json.dumps(top).encode()
    if not what:
        graphjson.load("g.json", data, None, LIBRARY)
        return
    with pytest.raises(BuildError) as caught:
        graphjson.load("g.json", data, None, LIBRARY)
    assert str(caught.value) == f"g.json: {what}"


# ---- any valid storage ----------------------------------------------------------


@st.composite
def planned_graphs(draw: st.DrawFn) -> dict[str, Any]:
    """A graph of sums and reshapes, its values in blocks drawn among those free."""
    count = draw(st.integers(2, 9))
    nodes, shapes = [null("x"), null("y")], [[2, 3], [2, 3]]
    for index in range(2, count):
        reads = [draw(st.integers(0, index - 1)) for _ in range(2)]
        if draw(st.booleans()) and draw(st.booleans()):
            nodes.append(call(f"v{index}", "__nop", [[reads[0], 0]]))
        else:
            name = draw(st.sampled_from(["elemwise_add", "elemwise_sub"]))
            nodes.append(call(f"f{index}", name, [[r, 0] for r in reads]))
        shapes.append([2, 3])
    heads = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3))
    storage = _storage(draw, nodes, heads)
    return graph(nodes, [0, 1], [[h, 0] for h in heads], shapes, storage=storage)


def _storage(
    draw: st.DrawFn, nodes: list[dict[str, Any]], heads: list[int]
) -> list[int]:
    """A block for each node: that of what a view shows, else a free or a new one."""
    root = list(range(len(nodes)))
    for index, node in enumerate(nodes):
        if node.get("attrs", {}).get("func_name") == "__nop":
            root[index] = root[node["inputs"][0][0]]
    last = {r: r for r in root}
    for index, node in enumerate(nodes):
        last[root[index]] = max(last[root[index]], index)
        for source, _ in node["inputs"]:
            last[root[source]] = max(last[root[source]], index)
    last |= {root[h]: 99 for h in heads} | {0: 99, 1: 99}
    blocks: dict[int, int] = {}
    busy: dict[int, int] = {}
    for index in range(len(nodes)):
        if root[index] == index:
            free = [b for b, until in busy.items() if until < index]
            blocks[index] = draw(st.sampled_from([*free, len(busy)]))
            busy[blocks[index]] = last[index]
    return [blocks[r] for r in root]


@settings(max_examples=60)
@given(planned_graphs())
def test_any_valid_storage_is_kept_to(top: dict[str, Any]) -> None:
    library = build(json.dumps(top), functions=LIBRARY, storage="given")
    made = library.plan
    rng = np.random.default_rng(3)
    values = {n: rng.standard_normal((2, 3)).astype(F) for n in "xy"}
    want = interpret(made.graph, values)
    net = library.host()
    net.run(**values)
    for name, value in net.outputs().items():
        np.testing.assert_array_equal(value, want[name])
    net.close()
    heads = [top["nodes"][head]["name"] for head, _ in top["heads"]]
    if len(set(heads)) < len(heads) or not all(n.startswith("f") for n in heads):
        return  # an output that is an input, a view or another output is copied beside
    blocks = top["attrs"]["storage_id"][1]
    assert made.arena_bytes == 24 * len(set(blocks))
    homes: dict[int, set[int]] = {}
    for node, block in zip(top["nodes"], blocks, strict=True):
        homes.setdefault(block, set()).add(made.places[node["name"]].home)
    assert all(len(found) == 1 for found in homes.values())
