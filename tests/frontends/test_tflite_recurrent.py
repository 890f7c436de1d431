"""Operators of .tflite files that keep state: what TFLM gives where LiteRT has another
rule or no kernel; steps one by one and all at once; reset, save, restore; refusals.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.model import Model
from tests import tflm
from tests.tflite_cases import compiled
from tests.tflite_files import One
from tests.tflite_recurrent import LSTM, RECURRENT, lstm_of

STEPS = 5


@pytest.mark.parametrize(
    "count", [1, pytest.param(tflm.FILES, marks=pytest.mark.sweep)]
)
def test_files_are_computed_as_by_tflm(count: int, tmp_path: Path) -> None:
    """LSTM of int16 and a state of int8 are TFLM's alone; others by --rounding tflm."""
    known = json.loads(tflm.PAGE.read_text())
    assert set(known) == set(tflm.KINDS)
    cases = [(name, n) for name in known for n in range(count)]
    libraries = []
    for number, (name, n) in enumerate(cases):
        graph = load("m.tflite", tflm.drawn(name, n).bytes(), {})
        model = Model("m.tflite", graph, "litert", "0" * 64)
        libraries.append(model.build(name=f"m{number}", rounding="tflm"))
    nets = compiled(libraries, tmp_path, ("c", "llvm"))
    for (name, n), library, every in zip(cases, libraries, nets, strict=True):
        for code, net in every:
            ready: Any = library.host("llvm") if code == "llvm" else net
            made = []
            for sample in tflm.drawn(name, n).samples(tflm.RUNS):
                ready.run(**sample)
                made.append(np.array(ready.get_output(library.plan.graph.outputs[0])))
            assert tflm.mark(made) == known[name][n], (name, n, code)


def whole_lstm(kind: str, steps: int) -> One:
    """The same weights whatever the steps; their number is open in the file."""
    one = One(LSTM, kind, np.random.default_rng(7))
    lstm_of(one, steps)
    x = one.tensors[0]
    axis = x.shape.index(steps)
    signature = tuple(-1 if i == axis else d for i, d in enumerate(x.shape))
    one.tensors[0] = replace(x, signature=signature)
    return one


@pytest.mark.parametrize(
    ("kind", "back"), [("float32", "c"), ("int8", "llvm"), ("int16", "llvm"), *(
        pytest.param(kind, back, marks=pytest.mark.sweep)
        for kind, back in (("float32", "llvm"), ("int8", "c"), ("int16", "c"))
    )],
)  # fmt: skip
def test_single_steps_are_one_run_of_all(kind: str, back: str, tmp_path: Path) -> None:
    """One file, open in its steps, as a stream and as a batch."""
    one = whole_lstm(kind, STEPS)
    x = one.tensors[0]
    axis = x.shape.index(STEPS)
    path = tmp_path / "m.tflite"
    path.write_bytes(one.bytes())
    forms = []
    for steps in (STEPS, 1):
        made = pybuild.load(path, input_dims={f"t0.{axis}": steps})
        forms.append(made.build(plan="rows").host(back))
    batch, stream = forms
    for again in range(2):
        for sample in one.samples(2):
            want = batch(**sample)
            rows = np.split(sample["t0"], STEPS, axis)
            have = [_one(stream(t0=row)) for row in rows]
            np.testing.assert_array_equal(np.concatenate(have, axis), _one(want))
            for name, value in batch.kept().items():
                np.testing.assert_array_equal(stream.kept()[name], value)
        if not again:
            batch.reset()
            stream.reset()


def _one(values: dict[str, Array]) -> Array:
    (value,) = values.values()
    return value


@pytest.mark.parametrize("code", RECURRENT)
def test_what_was_saved_goes_on_and_a_reset_forgets(code: str) -> None:
    one = One(code, "int8", np.random.default_rng(11))
    RECURRENT[code][1](one)
    graph = load("m.tflite", one.bytes(), {})
    library = Model("m.tflite", graph, "litert", "").build()
    net, other = library.host(), library.host()
    samples = one.samples(3)
    begun = [_one(net(**sample)) for sample in samples]
    saved = net.save_state()
    want = _one(net(**samples[0]))
    assert not np.array_equal(want, begun[0])
    other.restore_state(saved)
    np.testing.assert_array_equal(_one(other(**samples[0])), want)
    net.reset()
    for sample, value in zip(samples, begun, strict=True):
        np.testing.assert_array_equal(_one(net(**sample)), value)


def changed(code: str, kind: str, **options: Any) -> One:
    one = One(code, kind, np.random.default_rng(2))
    RECURRENT.get(code, ((), lambda _: None))[1](one)
    one.options |= options
    return one


def without_gate() -> One:
    one = changed(LSTM, "float32")
    one.reads[1] = -1
    return one


def with_more(position: int) -> One:
    one = changed(LSTM, "float32")
    one.reads[position] = one.reads[12]
    return one


def not_kept(position: int) -> One:
    one = changed(LSTM, "float32")
    at = one.reads[position]
    one.tensors[at] = replace(one.tensors[at], variable=False)
    return one


def scaled(position: int, scale: float, zero: int = 0, kind: str = "int8") -> One:
    one = changed(LSTM, kind)
    at = one.reads[position]
    one.tensors[at] = replace(one.tensors[at], scale=(scale,), zero_point=(zero,))
    return one


_KERAS = "Hint: TensorFlow Lite Micro has the LSTM of Keras only"
REFUSED = [
    (with_more(9), f"has peephole connections. {_KERAS}"),
    (with_more(16), f"has a projection. {_KERAS}"),
    (with_more(20), f"has layer normalisation. {_KERAS}"),
    (without_gate(), f"has no input gate. {_KERAS}"),
    (changed(LSTM, "int8", FusedActivationFunction=1),
     f"has another activation than tanh. {_KERAS}"),
    (changed("SVDF", "int8", FusedActivationFunction=3),
     "has another activation than RELU on int8. Hint: LiteRT has RELU there, "
     "TensorFlow Lite Micro also NONE"),
    (not_kept(18), "'t13' is no variable"),
    (scaled(19, 0.003), "the cell state 't14' has scale 0.003. Hint: LiteRT has powers "
                        "of 2 from 2^-15 to 2^-9, without a zero point"),
    (scaled(5, 0.01, 3), "weights 't5' have a zero point. Hint: quantise weights "
                         "symmetrically"),
    (scaled(2, 1e9), "the scale of 't2' is too large"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "what"), REFUSED)
def test_refusals(one: One, what: str) -> None:
    with pytest.raises(BuildError) as caught:
        load("m.tflite", one.bytes(), {})
    assert str(caught.value.problems[0]).endswith(f"({one.code}): {what}")
