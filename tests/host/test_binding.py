"""Weights that are loaded, shared and let go; inputs that own no memory: in both
back ends, with the answers of the same network built with constants."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.host.abi import CrtError, errors
from pybuild.host.devices import aligned
from pybuild.host.native import Net
from pybuild.host.parameter_image import Weights
from pybuild.ir.graph import Graph, Node, Tensor, verify
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.params.image_read import read_image
from pybuild.params.image_write import write_image
from pybuild.verify.samples import example_inputs
from tests.conftest import model_path
from tests.graphs.networks import classifier

BACKENDS = ("llvm", "c")
KINDS = ("int8", "float")


def error(name: str) -> type[CrtError]:
    return next(kind for kind in errors().values() if kind.__name__ == name)


def right(net: Net, inputs: dict[str, Array], want: dict[str, Array]) -> None:
    have = net(**inputs)
    assert all(np.array_equal(have[name], want[name]) for name in have)


def trained(kind: str, seed: int) -> Model:
    """The same network with other weights: scales are those of seed 0."""
    net = classifier(kind=kind)
    chance = np.random.default_rng(seed)
    for name, value in net.constants.items():
        if name.endswith("/w"):
            net.constants[name] = chance.permuted(value, axis=-1)
    return net.model()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_other_weights_are_loaded(kind: str, backend: str) -> None:
    library = trained(kind, 1).build(params="replaceable")
    other = trained(kind, 2)
    inputs = dict(example_inputs(library.plan.graph))
    wants = [dict(m.build().host(backend)(**inputs)) for m in (trained(kind, 1), other)]
    assert not all(np.array_equal(wants[0][name], wants[1][name]) for name in wants[0])
    values = {n: other.graph.constants[n] for n in library.plan.graph.parameters}
    ours, theirs = library.weights, Weights(library.image(values))
    net = library.instance(backend)
    with pytest.raises(error("CRT_ERR_UNBOUND")):
        net.run(**inputs)
    for weights, want in ((ours, wants[0]), (theirs, wants[1]), (ours, wants[0])):
        net.load_params(weights)
        right(net, inputs, want)
        assert weights.users == len(net.parameters)
    assert theirs.users == 0
    net.release_params()
    assert ours.users == 0
    with pytest.raises(error("CRT_ERR_UNBOUND"), match=net.parameters[0].name):
        net.setup()


@pytest.mark.parametrize("backend", BACKENDS)
def test_ten_instances_read_one_copy(backend: str) -> None:
    library = trained("int8", 1).build(params="replaceable")
    inputs = dict(example_inputs(library.plan.graph))
    donor = library.host(backend)
    want = dict(donor(**inputs))
    nets = [library.instance(backend) for _ in range(10)]
    for net in nets:
        net.share_params(donor)
    count = len(donor.parameters)
    assert library.weights.users == 11 * count
    image = library.weights.image
    for index in range(count):
        places = {net.parameter_address(index) for net in (donor, *nets)}
        assert len(places) == 1
        assert 0 <= places.pop() - image.ctypes.data < image.nbytes
    with pytest.raises(error("CRT_ERR_IN_USE")):
        library.weights.close()
    donor.release_params()
    del donor
    gc.collect()
    for net in nets:
        right(net, inputs, want)
        net.release_params()
    assert library.weights.users == 0
    library.weights.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_closed_instance_gives_its_parameters_back(backend: str) -> None:
    library = trained("int8", 1).build(params="replaceable")
    inputs = dict(example_inputs(library.plan.graph))
    donor, net = library.host(backend), library.instance(backend)
    want = dict(donor(**inputs))
    net.share_params(donor)
    donor.close()
    donor.close()
    assert library.weights.users == len(net.parameters)
    right(net, inputs, want)
    net.close()
    assert library.weights.users == 0
    library.weights.close()
    for call in (donor.go, net.release_params, lambda: net.share_params(donor)):
        with pytest.raises(ValueError, match="the instance is closed"):
            call()


def test_what_is_shared_takes_the_place_of_other_content() -> None:
    library, other = (trained("int8", 1).build(params="replaceable") for _ in range(2))
    net, donor = library.host(), other.instance()
    values = {"logits/w": np.zeros((5, 32), np.int8)}
    donor.load_params(Weights(other.image(values)))
    net.share_params(donor)
    assert library.weights.users == 0
    assert net.parameter_address("logits/w") == donor.parameter_address("logits/w")
    with pytest.raises(KeyError, match="'none' is not known"):
        net.share_params(donor, ["none"])


def test_an_image_of_another_arrangement_is_refused() -> None:
    """The last parameter's layout is another: nothing of the image is bound."""
    library = trained("int8", 1).build(params="replaceable")
    made = list(read_image(library.image()).parameters())
    made[-1] = replace(made[-1], layout=made[-1].layout + 1)
    weights = Weights(write_image(made))
    net = library.instance()
    with pytest.raises(error("CRT_ERR_LAYOUT")):
        net.load_params(weights)
    assert all(net.parameter_address(i) == 0 for i in range(len(net.parameters)))
    assert weights.users == 0


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"none": np.zeros(5, np.int8)}, "there is no 'none'"),
        ({"logits/w": np.zeros((5, 31), np.int8)}, "not int8[5, 31]"),
        ({"logits/w": np.zeros((5, 32), np.uint8)}, "not uint8[5, 32]"),
    ],
)
def test_values_that_do_not_fit(values: dict[str, Array], what: str) -> None:
    library = trained("int8", 1).build(params="replaceable")
    with pytest.raises(BuildError) as caught:
        library.image(values)
    assert what in str(caught.value)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["kws_int8.tflite", "ad_int8.tflite"])
def test_real_models_by_parameters(name: str, backend: str) -> None:
    model = pybuild.load(model_path(name))
    library = model.build(params="replaceable")
    inputs = dict(example_inputs(library.plan.graph))
    want = dict(model.build().host(backend)(**inputs))
    donor, net = library.host(backend), library.instance(backend)
    net.share_params(donor)
    donor.release_params()
    right(net, inputs, want)
    image = library.weights.image
    inside = range(image.ctypes.data, image.ctypes.data + image.nbytes)
    assert all(net.parameter_address(i) in inside for i in range(len(net.parameters)))


# ---- inputs that own no memory; bindings that TVM got wrong --------------------


def _tensors(**shapes: tuple[int, ...]) -> dict[str, Tensor]:
    return {name: Tensor(name, shape, DType.FLOAT32) for name, shape in shapes.items()}


def _graph(nodes: tuple[Node, ...], outputs: str, **shapes: tuple[int, ...]) -> Model:
    tensors = _tensors(**shapes)
    names = tuple(outputs.split())
    made = Graph("bound", "bound.test", nodes, tensors, ("x",), names, {})
    verify(made)
    return Model("bound.test", made, "litert", "0" * 64)


def behind_a_reshape() -> Model:
    view = Node("reshape", "view", ("x",), ("v",))
    return _graph((view, _relu("v", "y")), "y", x=(2, 6), v=(3, 4), y=(3, 4))


def also_an_output() -> Model:
    return _graph((_relu("x", "y"),), "x y", x=(2, 6), y=(2, 6))


def made_by_a_view() -> Model:
    view = Node("reshape", "view", ("y",), ("v",))
    return _graph((_relu("x", "y"), view), "v", x=(2, 6), y=(2, 6), v=(12,))


def view_and_source() -> Model:
    view = Node("reshape", "view", ("y",), ("v",))
    return _graph((_relu("x", "y"), view), "v y", x=(2, 6), y=(2, 6), v=(12,))


def view_of_the_input() -> Model:
    view = Node("reshape", "view", ("x",), ("v",))
    return _graph((view,), "v", x=(2, 6), v=(12,))


def _relu(source: str, made: str) -> Node:
    return Node("clip", "relu", (source,), (made,), {"clamp": (0.0, None)})


GRAPHS = (
    behind_a_reshape, also_an_output, made_by_a_view, view_and_source,
    view_of_the_input,
)  # fmt: skip


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", GRAPHS)
def test_bound_where_views_are(
    make: Callable[[], Model], backend: str, lazy: bool
) -> None:
    """Each input and output bound, rebound and taken home again."""
    library = make().build(lazy=("x",) if lazy else (), input="keep")
    graph, net = library.plan.graph, library.host(backend)
    outs = {n: aligned(graph.tensor(n).bytes).view(np.float32) for n in graph.outputs}
    for name in outs:
        outs[name] = outs[name].reshape(graph.tensor(name).shape)
    if lazy:
        with pytest.raises(error("CRT_ERR_UNBOUND"), match="'x'"):
            net.run()
        with pytest.raises(error("CRT_ERR_LAZY")):
            net.set_input("x", np.zeros((2, 6), np.float32))
    for times in (1, 2, 3):
        x = aligned(48).view(np.float32).reshape(2, 6)
        x[:] = times * np.linspace(-3, 3, 12, dtype=np.float32).reshape(2, 6)
        before = x.copy()
        net.bind_input("x", x)
        for name, out in outs.items():
            out[:] = 99
            net.bind_output(name, out if times < 3 else None)
        net.run()
        want = interpret(graph, {"x": x})
        for name in graph.outputs:
            assert np.array_equal(net.get_output(name), want[name])
            assert times == 3 or np.array_equal(outs[name], want[name])
        assert np.array_equal(x, before)
    net.bind_input("x", None)
    with pytest.raises(error("CRT_ERR_UNBOUND" if lazy else "CRT_ERR_INPUT_CONSUMED")):
        net.run()


def test_lazy_inputs_take_no_memory() -> None:
    model = classifier().model()
    plain = model.build(input="keep").plan.arena_bytes
    lazy = model.build(input="keep", lazy=("image",)).plan.arena_bytes
    assert lazy <= plain - 8 * 8 * 3
