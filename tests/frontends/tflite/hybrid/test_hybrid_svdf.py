"""SVDF of int8 weights on float32 inputs: LiteRT's bits, also from run to run; weights
of a byte, those of time, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ops.interpret import interpret, next_state
from tests.frontends.tflite.files import One
from tests.frontends.tflite.recurrent import NONE, RELU
from tests.ops.litert import run_litert

# batch, inputs, units, rank, memory
Sizes = tuple[int, int, int, int, int]
FEATURE, TIME = 1, 2


def svdf(
    sizes: Sizes, asymmetric: bool = False, activation: int = NONE, whole: bool = True
) -> One:
    """A file of it; whole: weights are int8."""
    batch, width, units, rank, memory = sizes
    one = One("SVDF", "float32", np.random.default_rng(sizes))
    one.x((batch, width))
    for columns, scale in ((width, 0.01), (memory, 0.02)):
        weights = one.values((units * rank, columns), "int8", -127, 127)
        if whole:
            one.constant(weights, "int8", (scale, 0))
        else:
            one.constant(np.float32(scale) * weights, "float32")
    one.constant(one.rng.normal(0, 1, units), "float32")
    one.kept((batch, units * rank * memory), "float32")
    one.y(quant=(), shape=(batch, units))
    one.with_options(
        "SVDFOptions", Rank=rank, FusedActivationFunction=activation,
        AsymmetricQuantizeInputs=asymmetric,
    )  # fmt: skip
    return one


FILES: dict[str, dict[str, Any]] = {
    "few": {"sizes": (1, 6, 4, 2, 3)},
    "batch": {"sizes": (2, 9, 3, 5, 7), "asymmetric": True},
    "lanes": {"sizes": (1, 40, 8, 1, 12), "activation": RELU},
    "rest": {"sizes": (1, 7, 3, 4, 9)},
    "real": {"sizes": (2, 19, 3, 9, 6), "whole": False},
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_litert_computes_the_same(name: str) -> None:
    """Each run goes on where the one before ended."""
    one = svdf(**FILES[name])
    data, samples = one.bytes(), one.samples(FILES[name]["sizes"][4] + 2)
    samples[1] = {key: 0 * value for key, value in samples[1].items()}
    model = pybuild.load(data)
    nets = [model.build().host("llvm")]
    if name == "batch":
        nets += [model.build().host("c"), model.build(target="cortex-m55").host("llvm")]
    state: dict[str, Array] = {}
    for sample, wanted in zip(samples, run_litert(data, samples), strict=True):
        theirs = wanted[f"t{one.outputs[0]}"]
        meant = interpret(model.graph, sample, state)
        state = next_state(model.graph, meant)
        np.testing.assert_array_equal(meant[model.graph.outputs[0]], theirs)
        for net in nets:
            (made,) = net.run(**sample).values()
            np.testing.assert_array_equal(made, theirs)


@pytest.mark.parametrize("name", ["lanes", "rest"])
def test_weights_are_bytes(name: str) -> None:
    _, width, units, rank, memory = FILES[name]["sizes"]
    model = pybuild.load(svdf(**FILES[name]).bytes())
    size = units * rank * (width + memory)
    flash = model.build(target="cortex-m4").report.flash.weights
    # rows of weights fill words; a bias, and of each filter little
    assert flash <= 1.15 * size + 4 * units + 4 * units * rank


def test_by_real_numbers() -> None:
    """--hybrid float: what the weights mean."""
    one = svdf(**FILES["few"])
    data, samples = one.bytes(), one.samples(3)
    model = pybuild.load(data, hybrid="float")
    assert [node.op for node in model.lower().nodes] == ["svdf"]
    net = model.build().host("llvm")
    for sample, wanted in zip(samples, run_litert(data, samples), strict=True):
        (made,) = net.run(**sample).values()
        np.testing.assert_allclose(made, wanted[f"t{one.outputs[0]}"], 0, 0.1)


# a tensor of the file, and what it is instead; the message
DAMAGED: dict[str, tuple[int, dict[str, Any], str]] = {
    "narrow": (FEATURE, {"shape": (8, 5)}, r"needs x\[...,K\] and w\[O,K\]"),
    "flat": (FEATURE, {"shape": (48,)}, r"input \[1, 6\], weights \[48\]"),
    "few filters": (FEATURE, {"shape": (6, 6)}, r"'.*' is \[1, 6\].*\[1, 8\]"),
    "scales": (
        FEATURE, {"scale": (0.01,) * 8, "zero_point": (0,) * 8}, "several scales",
    ),
    "scales of time": (
        TIME, {"scale": (0.01,) * 8, "zero_point": (0,) * 8}, "several scales",
    ),
    "no scale": (TIME, {"scale": (), "zero_point": ()}, "is int8 without a scale"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    one, (index, facts, said) = svdf(**FILES["few"]), DAMAGED[name]
    if "shape" in facts:
        facts = {**facts, "data": np.ones(facts["shape"], np.int8)}
    one.tensors[index] = replace(one.tensors[index], **facts)
    with pytest.raises(BuildError, match=said):
        pybuild.load(one.bytes())
