"""Without names in flash a parameter is known by its number, which the order of stages
changed: weights packed for one plan were those of other layers in another."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.graph_builder import GraphBuilder
from pybuild.host.parameter_image import Weights
from pybuild.ir.graph import Tensor
from pybuild.model import Model
from tests.graphs.rows import model_of


def three() -> Model:
    """x - a - c, x - b, all of one shape; y = c - a - b."""
    net, rng = GraphBuilder("three"), np.random.default_rng(0)

    def conv(x: Tensor, name: str) -> Tensor:
        value = rng.normal(0, 0.3, (4, 3, 3, 4)).astype(np.float32)
        return net.op("conv2d", x, net.parameter(name, value), pads=(1, 1, 1, 1))

    x = net.input("x", (1, 6, 8, 4))
    a, b = conv(x, "a"), conv(x, "b")
    net.output(net.op("sub", net.op("sub", conv(a, "c"), a), b), "y")
    return model_of(net.build())


def test_numbers_are_those_of_the_graph_on_every_plan() -> None:
    model, orders, results = three(), [], list[Array]()
    x = np.random.default_rng(1).normal(0, 1, (1, 6, 8, 4)).astype(np.float32)
    image = model.build(names="ids").image()
    for push in ([], ["x"]):
        lib = model.build(names="ids", push=push)
        steps = [step.node for step in lib.plan.steps]
        orders.append([node.inputs[1] for node in steps if node.op == "conv2d"])
        assert [slot.name for slot in lib.plan.slots.values()] == ["a", "b", "c"]
        net = lib.host()
        net.load_params(Weights(image))
        results.append(net(x=x)["y"])
    np.testing.assert_array_equal(*results)
    assert orders == [["a", "b", "c"], ["a", "c", "b"]]
