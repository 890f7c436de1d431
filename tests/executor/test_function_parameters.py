"""Weights of graphs of functions come late, whatever their kernels make of them: by
blob, by name, by number, by address. A graph without names in flash takes the same."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import pybuild as tvm
from pybuild import graph_executor
from pybuild.graph_executor import GraphModule
from pybuild.host.abi import CrtError
from pybuild.ops.base.signatures import SIGNATURES
from pybuild.ops.interpret import interpret
from pybuild.passes.awaited import awaited
from tests.frontends.graphjson.tvm_graphs import call, graph, null
from tests.graphs.networks import classifier

DEV = tvm.cpu(0)
Top = dict[str, Any]


def layer(function: str, *shapes: list[int], names: str = "xwb") -> Top:
    """One function of inputs of these shapes; the last is the output's."""
    inputs = names[: len(shapes) - 1]
    nodes = [
        *map(null, inputs),
        call("y", function, [[i, 0] for i in range(len(inputs))]),
    ]
    return graph(nodes, list(range(len(inputs))), [[len(inputs), 0]], list(shapes))


DENSE = layer("dense", [2, 6], [5, 6], [2, 5])
LAYERS: Mapping[str, Top] = {
    "dense": DENSE,
    "dense with a bias": layer("dense", [2, 6], [5, 6], [5], [2, 5]),
    "conv2d": layer("conv2d", [1, 6, 6, 4], [8, 3, 3, 4], [1, 4, 4, 8]),
    "conv2d with a bias": layer(
        "conv2d", [1, 6, 6, 4], [8, 3, 3, 4], [8], [1, 4, 4, 8]
    ),
    "depthwise_conv2d": layer(
        "depthwise_conv2d", [1, 6, 6, 4], [3, 3, 4], [1, 4, 4, 4]
    ),
    "add": layer("add", [2, 6], [6], [2, 6]),
}  # fmt: skip


def functions() -> list[Any]:
    made = {name: {} for name in ("dense", "conv2d", "depthwise_conv2d", "add")}
    return [tvm.function(name, op=name, **attrs) for name, attrs in made.items()]


def create(top: Top, device: tvm.runtime.Device = DEV) -> GraphModule:
    return graph_executor.create(json.dumps(top), functions(), device)


def values(top: Top, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    names = [node["name"] for node in top["nodes"] if node["op"] == "null"]
    return {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in zip(names, top["attrs"]["shape"][1], strict=False)
    }


def expected(top: Top, given: Mapping[str, np.ndarray]) -> np.ndarray:
    """By numpy."""
    loaded = tvm.load(json.dumps(top), functions=functions())
    return interpret(loaded.graph, given)["y"]


def same(made: GraphModule, top: Top, given: Mapping[str, np.ndarray]) -> None:
    made.run(x=given["x"])
    want = expected(top, given)
    np.testing.assert_allclose(made.get_output(0), want, rtol=1e-5, atol=1e-5)


def weights(given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: value for name, value in given.items() if name != "x"}


@pytest.mark.parametrize("name", LAYERS)
def test_weights_are_loaded_after_create(device: tvm.runtime.Device, name: str) -> None:
    if device != DEV and name not in ("dense with a bias", "depthwise_conv2d"):
        return  # two kernels that pack, of firmware that is built for each
    top, made = LAYERS[name], create(LAYERS[name], device)
    with pytest.raises(CrtError, match=r"(UNBOUND|MISSING).*'[wb]'"):
        made.run(x=values(top)["x"])
    for seed in (1, 2):
        given = values(top, seed)
        made.load_params(tvm.runtime.save_param_dict(weights(given)))
        same(made, top, given)
    assert made.get_input_info() == (
        {"x": tuple(given["x"].shape)}, {"x": "float32"},
    )  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("by", ["name", "number", "keyword"])
def test_weights_are_set_one_by_one(name: str, by: str) -> None:
    top, made = LAYERS[name], create(LAYERS[name])
    given = values(top, 3)
    for weight, value in weights(given).items():
        if by == "keyword":
            made.set_input(**{weight: value})
        else:
            index = made.get_input_index(weight)
            made.set_input(weight if by == "name" else index, value)
    same(made, top, given)


@pytest.mark.parametrize("name", LAYERS)
def test_a_lazy_weight_is_read_where_it_lies(name: str) -> None:
    top = json.loads(json.dumps(LAYERS[name]))
    top["attrs"]["lazy_init_input"] = ["list_str", ["w"]]
    made, given = create(top), values(top, 4)
    with pytest.raises(CrtError, match=r"CRT_ERR_UNBOUND.*'w'"):
        made.run(**{n: v for n, v in given.items() if n != "w"})
    lies = given["w"].copy()
    made.set_input_zero_copy("w", lies)
    same(made, top, given)
    lies *= 2
    same(made, top, {**given, "w": lies})
    made.set_input_zero_copy("w", None)
    with pytest.raises(CrtError, match=r"CRT_ERR_UNBOUND.*'w'"):
        made.run()


@pytest.mark.parametrize("name", LAYERS)
def test_ten_modules_share_them(name: str) -> None:
    top, donor, given = LAYERS[name], create(LAYERS[name]), values(LAYERS[name], 5)
    blob = tvm.runtime.save_param_dict(weights(given))
    donor.load_params(blob)
    sharers = [create(top) for _ in range(3)]
    for one in sharers:
        one.share_params(donor, blob)
    del donor
    for one in sharers:
        same(one, top, given)


def test_a_weight_behind_a_reshape() -> None:
    nodes = [
        null("x"), null("w"), call("flat", "__nop", [[1, 0]]),
        call("y", "dense", [[0, 0], [2, 0]]),
    ]  # fmt: skip
    shapes = [[2, 6], [30], [5, 6], [2, 5]]
    top = graph(nodes, [0, 1], [[3, 0]], shapes, storage=[0, 1, 1, 2])
    made, given = create(top), values(top, 6)
    made.load_params(tvm.runtime.save_param_dict(weights(given)))
    same(made, top, given)


def test_a_weight_that_is_read_as_it_is_too() -> None:
    nodes = [
        null("x"), null("w"), call("d", "dense", [[0, 0], [1, 0]]),
        call("y", "add", [[2, 0], [1, 0]]),
    ]  # fmt: skip
    top = graph(nodes, [0, 1], [[3, 0]], [[4, 4]] * 4)
    made, given = create(top), values(top, 7)
    made.load_params(tvm.runtime.save_param_dict(weights(given)))
    same(made, top, given)


def recurrent(kind: str) -> tuple[Top, list[Any]]:
    """svdf or lstm of inputs named 0, 1, ...: x and what is kept first."""
    shapes = {
        "svdf": [[2, 3], [2, 20], [4, 3], [4, 5], [2], [2, 2], [2, 20]],
        "lstm": [
            [4, 2, 3], [2, 5], [2, 5], *[[5, 3]] * 4, *[[5, 5]] * 4, *[[5]] * 4,
            [4, 2, 5], [2, 5],
        ],
    }[kind]  # fmt: skip
    attrs = {"svdf": {"rank": 2}, "lstm": {"time_major": True, "cell_clip": 0.0}}
    count = len(shapes) - 2
    nodes = [null(str(i)) for i in range(count)]
    nodes.append(call("y", kind, [[i, 0] for i in range(count)], outputs=2))
    top = graph(nodes, list(range(count)), [[count, 0], [count, 1]], shapes)
    return top, [tvm.function(kind, op=kind, **attrs[kind])]


@pytest.mark.parametrize("kind", ["svdf", "lstm"])
def test_weights_of_recurrent_layers(kind: str) -> None:
    top, known = recurrent(kind)
    made = graph_executor.create(json.dumps(top), known, DEV)
    given = values(top, 7)
    late = [name for i, name in enumerate(given) if i in SIGNATURES[kind].packed]
    made.load_params(tvm.runtime.save_param_dict({n: given[n] for n in late}))
    made.set_input(**{n: v for n, v in given.items() if n not in late})
    made.run()
    want = interpret(tvm.load(json.dumps(top), functions=known).graph, given)
    for index, name in enumerate(made.get_output_info()[0]):
        np.testing.assert_allclose(
            made.get_output(index), want[name], rtol=1e-5, atol=1e-5
        )


def test_what_kernels_pack_is_what_the_signatures_say() -> None:
    packed = {name for name, signature in SIGNATURES.items() if signature.packed}
    layers = {top["nodes"][-1]["attrs"]["func_name"] for top in LAYERS.values()}
    sums = {name for name in SIGNATURES if name.endswith("_sums")}
    assert packed == (layers & packed) | {"lstm", "norm", "svdf"} | sums
    for top in LAYERS.values():
        loaded = tvm.load(json.dumps(top), functions=functions())
        found = [str(problem) for problem in loaded.problems()]
        named = [n for n in awaited(loaded.graph) if f"'{n}' must be" in str(found)]
        assert bool(found) == bool(awaited(loaded.graph)) == bool(named)


# ---- without names in flash ---------------------------------------------------


@pytest.fixture(scope="module", params=["full", "ids"])
def library(request: pytest.FixtureRequest) -> Any:
    given = weights(values(LAYERS["conv2d with a bias"], 8))
    return tvm.build(
        json.dumps(LAYERS["conv2d with a bias"]), functions=functions(),
        weights=given, target="llvm", names=request.param,
    )  # fmt: skip


@pytest.mark.parametrize("how", ["name", "number", "blob", "image", "zero copy"])
@pytest.mark.parametrize("bound", [True, False])
def test_weights_are_replaced_without_names(
    device: tvm.runtime.Device, library: Any, how: str, bound: bool
) -> None:
    top = LAYERS["conv2d with a bias"]
    factory = library if bound else library["remove_params"]()
    made, given = GraphModule(factory["default"](device)), values(top, 9)
    if how == "zero copy" and device != DEV:
        with pytest.raises(ValueError, match=r"board|array of this machine"):
            made.set_input_zero_copy("w", given["w"])
        return
    if how == "blob":
        made.load_params(tvm.runtime.save_param_dict(weights(given)))
    elif how == "image":
        made.load_params(made.source.image(weights(given)))
    for name, value in weights(given).items():
        if how == "name":
            made.set_input(name, value)
        elif how == "number":
            made.set_input(made.get_input_index(name), value)
        elif how == "zero copy":
            made.set_input_zero_copy(name, value)
    same(made, top, given)
    for name, value in weights(given).items():
        np.testing.assert_array_equal(made.get_input(name), value)


@pytest.mark.parametrize("names", ["full", "ids"])
def test_weights_that_kernels_arrange_are_replaced(names: str) -> None:
    """Of int8 layers: packed together with biases and zero points."""
    model = classifier("tiny").model().with_parameters("replaceable")
    library = tvm.build(model, target="llvm", names=names)
    image = np.random.default_rng(1).integers(-128, 128, (1, 8, 8, 3), np.int8)
    for name, value in library.get_params().items():
        made = GraphModule(library["default"](DEV))
        late = GraphModule(library["remove_params"]()["default"](DEV))
        other = value.numpy()[::-1].copy()
        made.set_input(name, other)
        late.load_params(tvm.runtime.save_param_dict(library.get_params()))
        late.set_input_zero_copy(name, other)
        changed = {**model.graph.constants, name: other}
        renewed = dataclasses.replace(model.graph, constants=changed)
        lowered = tvm.Model("x", renewed, model.rounding, "").lower()
        want = interpret(lowered, {"image": image})["scores"]
        for one in (made, late):
            one.run(image=image)
            np.testing.assert_array_equal(one.get_output(0), want)
        other += 1
        late.run()
        made.set_input(name, other)
        made.run()
        np.testing.assert_array_equal(late.get_output(0), made.get_output(0))
