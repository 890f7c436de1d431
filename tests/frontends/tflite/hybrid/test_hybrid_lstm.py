"""LSTM of int8 weights and float32 activations, as TensorFlow's converter writes by
default: LiteRT's numbers, also from run to run, in one loop over the steps; weights of
a byte.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.boards.device import program_of, run_program
from pybuild.errors import BuildError
from tests.boards.devices import device
from tests.frontends.tflite.files import One
from tests.frontends.tflite.recurrent import LSTM, NONE, RELU, TANH
from tests.ops.litert import run_litert
from tests.toolchains import require

STEPS, WIDTH, UNITS = 6, 5, 7
X, Y = "t0", "t15"


def lstm(
    steps: int = STEPS, batch: int = 1, major: bool = True, clip: float = 0.0,
    asymmetric: bool = False, activation: int = TANH, mixed: bool = False,
) -> One:  # fmt: skip
    """A file of it; mixed: one gate has weights of float32."""
    one = One(LSTM, "float32", np.random.default_rng((steps, batch)))
    shape = (steps, batch, WIDTH) if major else (batch, steps, WIDTH)
    one.x(shape)
    for count in (WIDTH, UNITS):
        for gate in range(4):
            if mixed and gate == 3:
                one.constant(one.rng.normal(0, 1, (UNITS, count)), "float32")
                continue
            scale = float(np.float32(0.008 * np.exp(one.rng.uniform(-1, 1))))
            weights = one.values((UNITS, count), "int8", -127, 127)
            one.constant(weights, "int8", (scale, 0))
    one.reads += [-1] * 3
    for _ in range(4):
        one.constant(one.rng.normal(0, 1, UNITS), "float32")
    one.reads += [-1] * 2
    for _ in range(2):
        one.kept((batch, UNITS), "float32", ())
    one.reads += [-1] * 4
    one.y(quant=(), shape=(*shape[:2], UNITS))
    one.with_options(
        "UnidirectionalSequenceLSTMOptions", FusedActivationFunction=activation,
        CellClip=clip, ProjClip=0.0, TimeMajor=major,
        AsymmetricQuantizeInputs=asymmetric,
    )  # fmt: skip
    return one


FILES: dict[str, dict[str, Any]] = {
    "one": {}, "asymmetric": {"asymmetric": True, "clip": 0.4},
    "batch": {"batch": 3, "major": False, "asymmetric": True},
    "relu": {"activation": RELU, "batch": 2}, "short": {"steps": 2},
    "single": {"steps": 1},
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_litert_computes_the_same(name: str) -> None:
    """Each run goes on where the one before ended."""
    one = lstm(**FILES[name])
    data, samples = one.bytes(), one.samples(4)
    samples[1] = {X: 0 * samples[1][X]}
    model = pybuild.load(data)
    nets = [model.build().host("llvm")]
    if name == "batch":
        nets += [model.build().host("c"), model.build(target="cortex-m55").host("llvm")]
    for sample, wanted in zip(samples, run_litert(data, samples), strict=True):
        for net in nets:
            (made,) = net.run(**sample).values()
            np.testing.assert_allclose(made, wanted[Y], 1e-5, 1e-6)


@pytest.mark.parametrize("name", ["one", "asymmetric"])
def test_it_is_a_loop_of_int8(name: str) -> None:
    model = pybuild.load(lstm(**FILES[name]).bytes())
    library, kinds = (
        model.build(target="cortex-m4"),
        [n.op for n in model.lower().nodes],
    )
    assert kinds.count("repeat") == 1 and not {"dense_sums", "lstm"} & {*kinds}
    # rows of five and seven weights fill two words; of each a scale twice, a bias, and
    # two totals
    most = 4 * UNITS * (2 * 8 + 5 * 4) + 2 * 4 * UNITS
    assert library.report.flash.weights <= most


def test_by_real_numbers() -> None:
    """--hybrid float: what the weights mean."""
    one = lstm()
    data, samples = one.bytes(), one.samples(1)
    model = pybuild.load(data, hybrid="float")
    assert model.lower().nodes[0].op == "lstm"
    (made,) = model.build().host("llvm").run(**samples[0]).values()
    (wanted,) = run_litert(data, samples)
    np.testing.assert_allclose(made, wanted[Y], 0, 0.02)


def test_on_a_board() -> None:
    require("arm-none-eabi-gcc")
    one = lstm(**FILES["asymmetric"])
    model, samples = pybuild.load(one.bytes()), one.samples(2)
    library = model.build(name="net", target="cortex-m4")
    board = device("mps2-an386")
    found = run_program(board, program_of(board, library), samples)
    for made, wanted in zip(found, run_litert(one.bytes(), samples), strict=True):
        (value,) = made.values()
        np.testing.assert_allclose(value, wanted[Y], 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("how", "said"),
    [({"mixed": True}, "gates of int8 weights and others"),
     ({"activation": NONE}, "another activation than tanh")],
)  # fmt: skip
def test_what_is_refused(how: dict[str, Any], said: str) -> None:
    with pytest.raises(BuildError, match=said):
        pybuild.load(lstm(**how).bytes())


# a tensor of the file, and what it is instead; the message
DAMAGED: dict[str, tuple[int, dict[str, Any], str]] = {
    "narrow": (2, {"shape": (UNITS, 4)}, r"\[7, 5\], \[7, 4\]"),
    "short": (3, {"shape": (UNITS - 1, WIDTH)}, "gates of weights"),
    "flat": (1, {"shape": (UNITS * WIDTH,)}, r"gates of weights \[35\]"),
    "several scales": (
        1, {"scale": (0.01,) * UNITS, "zero_point": (0,) * UNITS}, "several scales",
    ),
    "bias of two axes": (9, {"shape": (UNITS, 1)}, r"bias 't9' is float32\[7, 1\]"),
    "bias of integers": (9, {"kind": "INT32"}, "bias 't9' is int32"),
    "state of two": (13, {"shape": (2, UNITS)}, r"state 't13' is float32\[2, 7\]"),
    "flat state": (14, {"shape": (UNITS,)}, r"state 't14' is float32\[7\]"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    one, (index, facts, said) = lstm(), DAMAGED[name]
    tensor = one.tensors[index]
    if tensor.data is not None and not tensor.variable:
        kind = np.int32 if "kind" in facts else np.asarray(tensor.data).dtype
        facts = {**facts, "data": np.ones(facts.get("shape", tensor.shape), kind)}
    one.tensors[index] = replace(tensor, **facts)
    with pytest.raises(BuildError, match=said):
        pybuild.load(one.bytes())
