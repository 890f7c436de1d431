"""Layers like those of CMSIS-NN: each is a model, equal for equal names, and one is
counted as it was when theirs were."""

from __future__ import annotations

from pybuild.frontends.tflite import load
from tests.bench import cmsis_nn
from tests.bench.cmsis_layers import file, layers


def test_every_layer_is_a_model_of_its_type() -> None:
    for one in layers():
        graph = load("layer.tflite", file(one), {})
        given = graph.tensor(graph.inputs[0])
        assert given.dtype.name.lower() == one.get("type", "int8"), one["name"]
        assert set(one["theirs"]) <= set(cmsis_nn.CORES)


def test_layers_are_of_their_names() -> None:
    first, second = layers()[:2]
    assert file(first) == file(first)
    assert file(first) != file({**first, "name": second["name"]})


def test_a_layer_is_counted_on_both_cores() -> None:
    one = next(one for one in layers() if one["name"] == "fc 64->10 b1")
    seen = cmsis_nn.costs_of({one["name"]: one})
    for core in cmsis_nn.CORES:
        ours = seen[one["name"], core]
        assert not ours.refused
        assert 0 < ours.kernel_instructions < one["theirs"][core]
