"""Kernels of LSTM and SVDF, of widths and units of which no word, no vector and no
block is a divisor, from states up to the ends of their types: numpy's meaning against
LLVM and sanitised C; and on emulated cores whose instructions they are made of.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybuild.boards.device import run_recorded
from pybuild.dtype import Array
from pybuild.frontends.tflite import load
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.recurrent import lstm_dsp
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import interpret, operator_of
from pybuild.targets.target import TARGETS
from tests.boards.devices import device
from tests.frontends.tflite.files import One
from tests.frontends.tflite.recurrent import LSTM, lstm_of, svdf_of
from tests.kernels.kernel_bench import Job, run_c, run_llvm

CORES = {"cortex-m4": "mps2-an386", "cortex-m55": "mps3-an547"}
# batch, inputs, units; of svdf rank and memory, too
LSTMS = {
    "litert": ((2, 16, 8), (1, 35, 17), (3, 4, 12), (1, 70, 9)),
    "tflm": ((1, 35, 17), (2, 4, 8)),
}
SVDFS = ((1, 16, 4, 1, 8), (1, 37, 9, 3, 5), (2, 4, 7, 2, 9), (1, 70, 6, 1, 3))
KERNELS = ("lstm_s8", "lstm_s8_tables", "svdf_s8_s16")
ENDS = ("_dsp", "_mve")


@functools.cache
def layer(code: str, sizes: tuple[int, ...], rounding: str) -> tuple[Node, Graph]:
    """The only layer of a file of those sizes, drawn from them as a seed."""
    one = One(code, "int8", np.random.default_rng(sizes))
    if code == LSTM:
        lstm_of(one, 3, sizes)
    else:
        svdf_of(one, "int16", sizes=sizes)
    graph = load("m.tflite", one.bytes(), {})
    made = Model("m.tflite", graph, rounding, "0" * 64).lower(rounding)
    (node,) = (n for n in made.nodes if n.op in ("lstm", "svdf"))
    return node, made


def every() -> Iterator[tuple[str, tuple[int, ...], str]]:
    """All layers: code, sizes, rounding."""
    for rounding, every_size in LSTMS.items():
        yield from ((LSTM, sizes, rounding) for sizes in every_size)
    yield from (("SVDF", sizes, "litert") for sizes in SVDFS)


def given(node: Node, graph: Graph, seed: int) -> dict[str, Array]:
    """Values of what is computed before the layer; many at the ends of the type."""
    rng, found = np.random.default_rng(seed), {}
    for name in dict.fromkeys(node.inputs):
        if name and name not in graph.constants:
            tensor = graph.tensor(name)
            low, high = tensor.dtype.low, tensor.dtype.high
            wide = rng.integers(2 * low, 2 * high, tensor.shape)
            found[name] = np.clip(wide, low, high).astype(tensor.dtype.numpy)
    return found


def jobs(core: str) -> list[Job]:
    """Each kernel that only that core has, of each layer."""
    made = []
    for number, (code, sizes, rounding) in enumerate(every()):
        node, graph = layer(code, sizes, rounding)
        arrays = given(node, graph, number)
        values = [{**graph.constants, **arrays}.get(name) for name in node.inputs]
        wanted = operator_of(node, graph).reference(node, graph, values)
        outputs = dict(zip(node.outputs, wanted, strict=True))
        for one in candidates(node, graph, TARGETS[core]):
            if one.func is not None and one.func.name.endswith(ENDS):
                made.append(Job(one, arrays, outputs))
    return made


@pytest.mark.parametrize("core", CORES)
def test_kernels_mean_what_numpy_means(core: str, tmp_path: Path) -> None:
    some = jobs(core)
    names = {job.candidate.func.name for job in some if job.candidate.func}
    (end,) = {name[-4:] for name in names}
    assert names == {f"{name}{end}" for name in KERNELS}
    for results in (run_llvm(some), run_c(some, tmp_path)):
        for job, made in zip(some, results, strict=True):
            for name, want in job.outputs.items():
                assert job.candidate.func is not None
                np.testing.assert_array_equal(made[name], want, job.candidate.func.name)


@pytest.mark.parametrize("emit", ["c", "obj"])
@pytest.mark.parametrize("core", CORES)
def test_on_a_core(core: str, emit: str) -> None:
    """One of each kind, of what the other test has most odd."""
    for code, sizes, rounding in (
        (LSTM, (1, 35, 17), "litert"),
        (LSTM, (1, 35, 17), "tflm"),
        ("SVDF", (1, 37, 9, 3, 5), "litert"),
    ):
        node, graph = layer(code, sizes, rounding)
        model = Model("m", graph, rounding, "0" * 64)
        library = model.build(name="m", target=core, emit=emit)
        names = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
        assert any(name.endswith(ENDS) for name in names), names
        arrays = {n: v for n, v in given(node, graph, 5).items() if n in graph.inputs}
        found = run_recorded(device(CORES[core], "gcc"), library, arrays)
        wanted = interpret(library.plan.graph, arrays)
        for name in node.outputs[:1]:
            np.testing.assert_array_equal(found[name], wanted[name], f"{code} {sizes}")


@pytest.mark.parametrize(("core", "end"), [("cortex-m4", ""), ("cortex-m55", "_mve")])
def test_weights_that_users_replace(core: str, end: str) -> None:
    """Pairs are for known weights: -128 beside a number below 0 has no half."""
    node, graph = layer(LSTM, (1, 35, 17), "litert")
    known = {n: n for n in node.inputs if n in graph.constants}
    late = replace(graph, parameters=known)
    names = [c.func.name for c in candidates(node, late, TARGETS[core]) if c.func]
    assert names == [*dict.fromkeys(("lstm_s8", f"lstm_s8{end}"))]
    least = {n: np.full_like(graph.constants[n], -128) for n in node.inputs[3:11]}
    wide = replace(graph, constants={**graph.constants, **least})
    assert not lstm_dsp.fits(node, wide)
    assert lstm_dsp.fits(node, graph)
