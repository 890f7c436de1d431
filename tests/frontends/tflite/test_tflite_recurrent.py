"""Operators of .tflite files that keep state: what TFLM gives where LiteRT has another
rule or no kernel; steps one by one and all at once; reset, save, restore; refusals.
"""

from __future__ import annotations

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
from pybuild.ops.interpret import interpret
from pybuild.verify.check import check
from pybuild.verify.samples import example_inputs
from tests.frontends.tflite import tflm
from tests.frontends.tflite.files import One
from tests.frontends.tflite.recurrent import LSTM, RECURRENT, lstm_of
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write

STEPS = 5


@pytest.mark.parametrize(
    "count", [1, pytest.param(tflm.FILES, marks=pytest.mark.sweep)]
)
def test_files_are_computed_as_by_tflm(count: int, tmp_path: Path) -> None:
    """LSTM of int16 and a state of int8 are TFLM's alone; others by --rounding tflm."""
    names = [name for name in tflm.KINDS if name.startswith(("lstm", "svdf"))]
    cases = [(name, n) for name in names for n in range(count)]
    known = tflm.page()["files"]
    for (name, n), found in zip(cases, tflm.ours(cases, tmp_path), strict=True):
        assert set(found.values()) == {known[name][n]}, (name, n, found)


def whole_lstm(kind: str, steps: int) -> One:
    """The same weights whatever the steps; their number is open in the file."""
    one = One(LSTM, kind, np.random.default_rng(7))
    lstm_of(one, steps)
    x = one.tensors[0]
    axis = x.shape.index(steps)
    signature = tuple(-1 if i == axis else d for i, d in enumerate(x.shape))
    one.tensors[0] = replace(x, signature=signature)
    return one


@pytest.mark.parametrize("kind", ["float32", "int8", "int16"])
def test_single_steps_are_one_run_of_all(kind: str, tmp_path: Path) -> None:
    """One file, open in its steps: as a stream in C, as a batch by LLVM."""
    one = whole_lstm(kind, STEPS)
    x = one.tensors[0]
    axis = x.shape.index(STEPS)
    path = tmp_path / "m.tflite"
    path.write_bytes(one.bytes())
    forms = []
    for steps, back in ((STEPS, "llvm"), (1, "c")):
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


def variables() -> tuple[list[FileTensor], list[FileOperator]]:
    """y = v + x; v := y"""
    plain = [FileTensor(name, (1, 3)) for name in ("x", "v", "y")]
    title = {"Container": "", "SharedName": "v"}
    handle = FileOperator("VAR_HANDLE", (), (3,), "VarHandleOptions", title)
    read = FileOperator("READ_VARIABLE", (3,), (1,), "ReadVariableOptions")
    add = FileOperator("ADD", (1, 0), (2,), "AddOptions")
    assign = FileOperator("ASSIGN_VARIABLE", (3, 2), (), "AssignVariableOptions")
    return [*plain, FileTensor("h", (), "RESOURCE")], [handle, read, add, assign]


def repeated(
    tensors: list[FileTensor], operators: list[FileOperator], count: int
) -> bytes:
    """A file of so many steps of one: each reads what the one before has kept. Its
    inputs are x0, x1, ..., its outputs y0, ..., those of one first and last tensor.
    """
    every: list[FileTensor] = []
    calls, edges = [], []
    y = next(o.outputs[-1] for o in reversed(operators) if o.outputs)
    for step in range(count):
        at = {}
        for index, tensor in enumerate(tensors):
            is_kept = tensor.data is not None or tensor.variable
            if is_kept and step:
                at[index] = index
                continue
            at[index] = len(every)
            role = {0: "x", y: "y"}.get(index, tensor.name + "_")
            every.append(replace(tensor, name=f"{role}{step}"))
        for each in operators:
            inputs = tuple(at.get(i, i) for i in each.inputs)
            outputs = tuple(at[i] for i in each.outputs)
            calls.append(replace(each, inputs=inputs, outputs=outputs))
        edges.append((at[0], at[y]))
    return write(every, calls, [x for x, _ in edges], [y for _, y in edges])


@pytest.mark.parametrize("kind", ["svdf float32", "svdf int8", "variables"])
def test_runs_are_one_run_of_as_many_steps(kind: str) -> None:
    """What operators of one file keep goes from one to the next, as in LiteRT."""
    if kind == "variables":
        tensors, operators = variables()
    else:
        one = One("SVDF", kind.split()[1], np.random.default_rng(3))
        RECURRENT["SVDF"][1](one)
        call = FileOperator(one.code, tuple(one.reads), tuple(one.outputs), one.table,
                            one.options)  # fmt: skip
        tensors, operators = one.tensors, [call]
    rng, shape = np.random.default_rng(4), tensors[0].shape
    nets, wanted = [], []
    for steps, back in ((1, "c"), (STEPS, "llvm")):
        graph = load("m.tflite", repeated(tensors, operators, steps), {})
        nets.append(Model("m.tflite", graph, "litert", "").build().host(back))
    for _ in range(2):
        if tensors[0].kind == "INT8":
            x = rng.integers(-128, 128, (STEPS, *shape)).astype(np.int8)
        else:
            x = rng.normal(0, 1, (STEPS, *shape)).astype(np.float32)
        given = {f"x{n}": row for n, row in enumerate(x)}
        wanted.append((given, nets[1](**given)))
        for row, want in zip(x, wanted[-1][1].values(), strict=True):
            np.testing.assert_array_equal(_one(nets[0](x0=row)), want)
    if kind == "variables":  # LiteRT wants them assigned once: test_tflite_variables.py
        return
    data = repeated(tensors, operators, STEPS)
    theirs = run_litert(data, [given for given, _ in wanted])
    for (_, ours), values in zip(wanted, theirs, strict=True):
        for name, value in ours.items():
            np.testing.assert_allclose(value, values[name], 1e-5, 1e-5)


@pytest.mark.parametrize("code", ["SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"])
def test_nan_stays_nan(code: str) -> None:
    """A reading that is NaN is in all that is made of it, as in LiteRT, until it is
    forgotten."""
    one = One(code, "float32", np.random.default_rng(5))
    RECURRENT[code][1](one)
    data = one.bytes()
    graph = load("m.tflite", data, {})
    given = {n: np.ones(graph.tensor(n).shape, np.float32) for n in graph.inputs}
    next(iter(given.values())).flat[0] = np.nan
    (theirs,) = run_litert(data, [dict(given)])
    for back in ("c", "llvm"):
        net = Model("m.tflite", graph, "litert", "").build().host(back)
        net.run(**given)
        for name, have in net.outputs().items():
            assert np.isnan(have).any()
            np.testing.assert_array_equal(np.isnan(have), np.isnan(theirs[name]), back)
        net.close()


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
     "has another activation than tanh on int8. Hint: of float32 there are RELU, "
     "RELU_N1_TO_1 and RELU6 too"),
    (changed(LSTM, "float32", FusedActivationFunction=0),
     "has another activation than tanh on float32. Hint: of float32 there are RELU, "
     "RELU_N1_TO_1 and RELU6 too"),
    (changed("SVDF", "int8", FusedActivationFunction=3),
     "has another activation than RELU on int8. Hint: LiteRT has RELU there, "
     "TensorFlow Lite Micro also NONE"),
    (not_kept(18), "'t13' is not a variable"),
    (scaled(19, 0.003), "the cell state 't14' has scale 0.003. Hint: LiteRT has powers "
                        "of 2 from 2^-15 to 2^-9, without a zero point"),
    (scaled(5, 0.01, 3), "weights 't5' have a zero point. Hint: quantise weights "
                         "symmetrically"),
    (scaled(2, 1e9), "the scale of 't2' is too large"),
]  # fmt: skip


@pytest.mark.parametrize("activation", [1, 2, 3])
def test_a_float_lstm_of_another_activation(activation: int, tmp_path: Path) -> None:
    one = changed(LSTM, "float32", FusedActivationFunction=activation)
    path = tmp_path / "m.tflite"
    path.write_bytes(one.bytes())
    made = check(path, pybuild.build(path), ref="litert", samples=6)
    assert made.ok and set(made.backends) == {"c", "llvm"}, made


@pytest.mark.parametrize(("one", "what"), REFUSED)
def test_refusals(one: One, what: str) -> None:
    with pytest.raises(BuildError) as caught:
        load("m.tflite", one.bytes(), {})
    assert str(caught.value.problems[0]).endswith(f"({one.code}): {what}")


def test_svdf_needs_no_bias() -> None:
    """Neither left out nor behind the last input."""
    graph = load("m.tflite", tflm.drawn("svdf int8", 0).bytes(), {})
    (node,) = (n for n in graph.nodes if n.op == "svdf")
    made = []
    for inputs in ((*node.inputs[:4], ""), node.inputs[:4]):
        nodes = [replace(n, inputs=inputs) if n is node else n for n in graph.nodes]
        model = Model(
            "m.tflite", replace(graph, nodes=tuple(nodes)), "litert", "0" * 64
        )
        library = model.build()
        given = example_inputs(library.plan.graph)
        made.append(interpret(library.plan.graph, given)[library.plan.graph.outputs[0]])
        found = library.host()(**given)[library.plan.graph.outputs[0]]
        np.testing.assert_array_equal(found, made[-1])
    np.testing.assert_array_equal(*made)
