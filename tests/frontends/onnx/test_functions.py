"""Graph JSON whose nodes name functions: libraries, and the graphs of TVM's tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild import build
from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.frontends import graphjson
from pybuild.host.abi import CrtError
from pybuild.host.parameter_image import Weights
from pybuild.ir.loop import FLOAT32, Func, binary, load
from pybuild.kernels.base.builder import Builder
from pybuild.ops.base.function import Function
from tests.frontends.graphjson.tvm_graphs import call, duplex, graph, null, simple

F = np.float32
BACKENDS = ("llvm", "c")


def elementwise(name: str, op: str, count: int = 2, in_place: bool = False) -> Func:
    """y = a op b (op c), for a[0] elements."""
    k = Builder(name)
    n = k.arg("count", 0)
    y = k.row("y", 0, FLOAT32, writable=True)
    reads = [k.row(f"x{i}", 1 + i, FLOAT32) for i in range(count)]
    with k.loop("i", n) as i:
        value = load(reads[0], i)
        for other in reads[1:]:
            value = binary(op, value, load(other, i))
        k.store(y, i, value)
    return k.finish(in_place)


def size(outputs: Any, inputs: Any) -> list[int]:
    return [outputs[0].size]


def by_loop(name: str, op: str, count: int = 2) -> Function:
    return pybuild.function(
        name, loop=elementwise(f"{name}_loop", op, count), arguments=size
    )


def by_op(name: str, op: str) -> Function:
    return pybuild.function(name, op={"+": "add", "-": "sub", "*": "mul"}[op])


def runs(
    top: dict[str, Any],
    functions: Any,
    values: dict[str, Array],
    params: dict[str, Array] | None = None,
    storage: str = "planned",
    backends: tuple[str, ...] = BACKENDS,
) -> list[dict[str, Array]]:
    """The outputs of a graph, from each back end."""
    library = build(
        json.dumps(top), functions=functions, weights=params, storage=storage
    )
    found = []
    for backend in backends:
        net = library.host(backend)
        net.run(**values)
        found.append(net.outputs())
        net.close()
    return found


# ---- the graphs of TVM's tests --------------------------------------------------


@pytest.mark.parametrize("make", [by_op, by_loop])
@pytest.mark.parametrize("storage", ["planned", "given"])
def test_simple(make: Callable[[str, str], Function], storage: str) -> None:
    """test_runtime_graph.py: x + 1 by one function."""
    a = np.arange(4, dtype=F)
    one = {"y": np.ones(4, F)}
    for made in runs(simple(), [make("myadd", "+")], {"x": a, **one}, storage=storage):
        np.testing.assert_array_equal(made["add"], a + 1)


@pytest.mark.parametrize("make", [by_op, by_loop])
def test_weights_are_given_by_name(make: Callable[[str, str], Function]) -> None:
    """Also the first argument, which crt hands to kernels last."""
    a, w = np.arange(4, dtype=F), np.array([5, 6, 7, 9], F)
    top = simple("mysub")
    for params, inputs, want in (
        ({"y": w}, {"x": a}, a - w),
        ({"x": w}, {"y": a}, w - a),
        ({"x": a, "y": w}, {}, a - w),
    ):
        for made in runs(top, [make("mysub", "-")], inputs, params):
            np.testing.assert_array_equal(made["add"], want)


@pytest.mark.parametrize("storage", ["planned", "given"])
@pytest.mark.parametrize("make", [by_op, by_loop])
def test_duplex(make: Callable[[str, str], Function], storage: str) -> None:
    """test_runtime_heterogeneous.py: A + B - C + D, over two copies."""
    library = pybuild.functions(make("elemwise_add", "+"), make("elemwise_sub", "-"))
    rng = np.random.default_rng(1)
    values = {n: rng.standard_normal(4).astype(F) for n in "ABCD"}
    want = values["A"] + values["B"] - values["C"] + values["D"]
    for made in runs(duplex(devices=False), library, values, storage=storage):
        np.testing.assert_array_equal(made["add2"], want)


def test_devices_are_kept() -> None:
    library = pybuild.functions(
        by_op("elemwise_add", "+"), by_loop("elemwise_sub", "-")
    )
    made = graphjson.load("d.json", json.dumps(duplex()).encode(), None, library)
    assert [(n.op, n.device) for n in made.nodes] == [
        ("add", 2), ("copy", 1), ("call", 1), ("copy", 2), ("add", 2),
    ]  # fmt: skip


def test_reshapes_and_weights_of_crt() -> None:
    """graph_executor_test.cc: two weights and a reshape in the memory of its input."""
    nodes = [
        null("x"), null("p0"), null("p1"),
        call("fused_add", "tvmgen_default_fused_add", [[0, 0], [1, 0]]),
        call("reshape_nop", "__nop", [[3, 0]]),
        call("fused_mul", "tvmgen_default_fused_mul", [[4, 0], [2, 0]]),
    ]  # fmt: skip
    shapes = [[2, 3], [2, 3], [6], [2, 3], [6], [6]]
    top = graph(nodes, [0, 1, 2], [[5, 0]], shapes, storage=[0, 1, 2, 3, 3, 4])
    library = [
        pybuild.function("tvmgen_default_fused_add", op="add"),
        by_loop("tvmgen_default_fused_mul", "*"),
    ]
    x = np.arange(6, dtype=F).reshape(2, 3)
    p0, p1 = x[::-1].copy(), np.linspace(1, 2, 6, dtype=F)
    for storage in ("planned", "given"):
        found = runs(top, library, {"x": x}, {"p0": p0, "p1": p1}, storage)
        for made in found:
            np.testing.assert_array_equal(made["fused_mul"], (x + p0).reshape(-1) * p1)


@pytest.mark.parametrize("make", [by_op, by_loop])
@pytest.mark.parametrize("storage", ["planned", "given"])
def test_lazy_input(make: Callable[[str, str], Function], storage: str) -> None:
    """LazyInitInput: y gets no memory, is bound, and x + y is right."""
    top = simple()
    top["attrs"]["lazy_init_input"] = ["list_str", ["y"]]
    library = build(json.dumps(top), functions=make("myadd", "+"), storage=storage)
    eager = build(
        json.dumps(top), functions=make("myadd", "+"), storage=storage, lazy=()
    )
    assert eager.plan.arena_bytes == library.plan.arena_bytes + 16
    x, y = np.arange(4, dtype=F), np.ones(4, F)
    for backend in BACKENDS:
        net = library.host(backend)
        net.set_input("x", x)
        with pytest.raises(CrtError, match="CRT_ERR_UNBOUND"):
            net.run()
        net.bind_input("y", y)
        net.run(x=x)
        np.testing.assert_array_equal(net.get_output("add"), x + y)
    text, params = graphjson.dump(library.model.graph)
    back = graphjson.load("n.json", text.encode(), params, make("myadd", "+"))
    assert back.lazy == ("y",)
    assert "_selftest_input_1[4]" in library.files()["graph_selftest.c"]


# ---- arguments ------------------------------------------------------------------


def flat(top: dict[str, Any]) -> dict[str, Any]:
    for node in top["nodes"]:
        if "attrs" in node:
            node["attrs"]["flatten_data"] = "1"
    return top


def seen_shapes() -> tuple[Function, list[Any]]:
    """A function that notes what shapes it is called with."""
    seen: list[Any] = []

    def arguments(outputs: Any, inputs: Any) -> list[int]:
        seen.append([list(t.shape) for t in (*outputs, *inputs)])
        return [outputs[0].size]

    loop = elementwise("noted_loop", "+")
    return pybuild.function("myadd", loop=loop, arguments=arguments), seen


def test_flattened_arguments() -> None:
    x, y = np.arange(6, dtype=F).reshape(2, 3), np.ones((2, 3), F)
    for given, want in (
        (simple(shape=[2, 3]), [2, 3]),
        (flat(simple(shape=[2, 3])), [6]),
    ):
        noted, seen = seen_shapes()
        for function in (noted, by_op("myadd", "+")):
            for made in runs(given, [function], {"x": x, "y": y}):
                np.testing.assert_array_equal(made["add"], x + y)
        assert seen and all(shapes == [want] * 3 for shapes in seen)


def test_a_flattened_operator_works_on_flat_tensors() -> None:
    """Shapes that do not broadcast, but have as many elements."""
    nodes = [null("x"), null("y"), call("sum", "myadd", [[0, 0], [1, 0]])]
    shapes = [[2, 3], [3, 2], [6, 1]]
    top = flat(graph(nodes, [0, 1], [[2, 0]], shapes))
    x = np.arange(6, dtype=F)
    values = {"x": x.reshape(2, 3), "y": x.reshape(3, 2)}
    for storage in ("planned", "given"):
        for made in runs(top, [by_op("myadd", "+")], values, storage=storage):
            np.testing.assert_array_equal(made["sum"], (x + x).reshape(6, 1))


def test_integers_are_ranks_and_dimensions_unless_given() -> None:
    k = Builder("integers")
    args = [k.arg(f"a{i}", 0) for i in range(7)]
    y = k.row("y", 0, DType.INT32, writable=True)
    for i, value in enumerate(args):
        k.store(y, i, value)
    top = graph([null("x"), call("f", "ints", [[0, 0]])], [0], [[1, 0]],
                [[2, 1, 3, 1], [7]], types=["float32", "int32"])  # fmt: skip
    x = {"x": np.zeros((2, 1, 3, 1), F)}
    loop = k.finish()
    given: list[tuple[Any, list[int]]] = [
        (None, [1, 7, 4, 2, 1, 3, 1]),
        ([9, 8, 7, 6, 5, 4, 2**31 - 1], [9, 8, 7, 6, 5, 4, 2**31 - 1]),
        (lambda outputs, inputs: range(7), list(range(7))),
    ]
    for arguments, want in given:
        function = pybuild.function("ints", loop=loop, arguments=arguments)
        for made in runs(top, [function], x):
            assert made["f"].tolist() == want
    top["attrs"]["shape"][1][0] = [6]
    function = pybuild.function("ints", loop=loop)
    with pytest.raises(BuildError) as caught:
        build(json.dumps(top), functions=function)
    assert str(caught.value) == (
        "graph.json: node 'f' (call): the loop of 'ints' has 7 arguments, it gets 4."
        " Hint: arguments= gives them; without it they are the ranks and dimensions"
    )


def test_several_outputs() -> None:
    k = Builder("both")
    y, z = (k.row(n, i, FLOAT32, writable=True) for i, n in enumerate("yz"))
    x = k.row("x", 2, FLOAT32)
    with k.loop("i", 4) as i:
        k.store(y, i, load(x, i) + load(x, i))
        k.store(z, i, load(x, i) * load(x, i))
    nodes = [null("x"), call("f", "both", [[0, 0]], outputs=2)]
    nodes.append(call("sum", "add", [[1, 1], [1, 0]]))
    top = graph(nodes, [0], [[1, 1], [2, 0]], [[4]] * 4)
    a = np.arange(4, dtype=F)
    library = [pybuild.function("both", loop=k.finish()), by_op("add", "+")]
    for made in runs(top, library, {"x": a}):
        np.testing.assert_array_equal(made["f:1"], a * a)
        np.testing.assert_array_equal(made["sum"], a + a + a * a)


def test_in_place() -> None:
    """A loop that says so takes over the memory of an input that dies."""
    nodes = [null("x"), null("y"), call("s", "first", [[0, 0], [1, 0]])]
    nodes.append(call("t", "second", [[2, 0], [1, 0]]))
    top = graph(nodes, [0, 1], [[3, 0]], [[64]] * 4)
    arena = {}
    for in_place in (False, True):
        library = [
            pybuild.function(n, loop=elementwise(n, "+", in_place=in_place),
                             arguments=[64])
            for n in ("first", "second")
        ]  # fmt: skip
        arena[in_place] = build(json.dumps(top), functions=library).plan.arena_bytes
        x = np.arange(64, dtype=F)
        for made in runs(top, library, {"x": x, "y": x * 2}):
            np.testing.assert_array_equal(made["t"], x + x * 2 + x * 2)
    assert arena == {False: 3 * 256, True: 2 * 256}


def test_a_call_is_not_computed_ahead() -> None:
    """Though all it reads is known, and it has a reference."""
    function = pybuild.function(
        "myadd",
        loop=elementwise("sum", "+"),
        arguments=size,
        reference=lambda a, b: a + b,
    )
    w = np.ones(4, F)
    library = build(
        json.dumps(simple()),
        functions=function,
        weights={"x": w, "y": w},
        params="constant",
    )
    assert [step.node.op for step in library.plan.steps] == ["call"]


# ---- files ----------------------------------------------------------------------


def test_calls_come_back(tmp_path: Any) -> None:
    """A graph with calls, written and read with the same functions."""
    library = pybuild.functions(
        by_loop("elemwise_add", "+"), by_op("elemwise_sub", "-")
    )
    first = graphjson.load("d.json", json.dumps(flat(duplex())).encode(), None, library)
    text, params = graphjson.dump(first)
    assert '"func_name": "elemwise_add"' in text
    back = graphjson.load("d.json", text.encode(), params, library)
    assert back == first
    assert graphjson.dump(back) == (text, params)
    path = tmp_path / "d.json"
    path.write_text(text)
    assert pybuild.load(path, functions=library).graph.nodes == first.nodes
    with pytest.raises(BuildError, match="call functions: elemwise_add"):
        pybuild.load(path)


def test_a_tree_with_a_function_tests_itself(tmp_path: Any) -> None:
    """By its reference, or by what these kernels make here."""
    loop = elementwise("sum", "+")
    texts = []
    for reference in (None, lambda a, b: a + b, lambda a, b: a - b):
        function = pybuild.function(
            "myadd", loop=loop, arguments=size, reference=reference
        )
        library = build(json.dumps(simple()), functions=function, name="simple")
        texts.append(library.files()["simple_selftest.c"])
    assert texts[0] == texts[1] != texts[2]


def test_weights_as_parameters() -> None:
    """They can be loaded anew by name, also where the function reads them first."""
    w = np.full(4, 5, F)
    for function in (by_op("f", "-"), by_loop("f", "-")):
        library = build(
            json.dumps(simple("f")),
            functions=function,
            weights={"x": np.ones(4, F)},
        )
        assert len(library.plan.slots) == 1
        for backend in BACKENDS:
            net = library.host(backend)
            net.load_params(Weights(library.image({"x": w})))
            net.run(y=np.ones(4, F))
            np.testing.assert_array_equal(net.get_output("add"), w - 1)
