"""Every kernel writer and every epilogue is asked for by a layer here, and what it
writes is compiled once by each compiler of each core: gcc 12 ended with an internal
error in a form that no test had asked for.

Layers are those of tests/ops, one of each family, type and operator, and ends of each
rule and size of factor. Which of them asks for which writer is seen by running them.
"""

from __future__ import annotations

import ast
import cProfile
import itertools
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import CodeType

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.frontends.tflite import load
from pybuild.ir.graph import Graph, Node, Quant
from pybuild.ir.loop import Func
from pybuild.kernels.table import candidates
from pybuild.targets.core import CORES
from pybuild.targets.target import TARGETS
from pybuild.targets.toolchain import choose_toolchain, find_toolchain
from tests.frontends.tflite.hybrid.test_hybrid import LAYERS as HYBRID
from tests.kernels.kernel_bench import c_source
from tests.kernels.kernel_cases import (
    INT8,
    INT32,
    ROUNDINGS,
    case,
    int8_cases,
    tensor,
    weighted_case,
)
from tests.kernels.test_hard_channels import _layer
from tests.kernels.test_sums_of_two import _cases as sums_of_two
from tests.kernels.test_winograd import layer as winograd
from tests.ops.cases import cases
from tests.toolchains import INCLUDE, ROOT, absent

HERE = ROOT / "pybuild" / "kernels"
WRITERS_OF = ("dsp", "mve", "scalar", "compact", "epilogues", "layers")
CHECKED = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m55", "rv32imc")
# which between them have every writer that another has, and what they optimise for
ASKED = {
    "cortex-m55": ("balanced",), "cortex-m4": ("size", "speed"), "cortex-m0": ("size",),
}  # fmt: skip
# scale(x) * scale(w) / scale(y): from hardly anything to shifts to the left
FACTORS = (0.0004, 0.3, 1.25, 1.3)
ENDS = (
    ("dense", (1, 32), (2, 32)),
    ("dense", (2, 7), (9, 7)),
    ("conv2d", (1, 4, 5, 16), (8, 1, 1, 16)),
    ("conv2d", (1, 4, 5, 3), (4, 3, 3, 3)),
    ("depthwise_conv2d", (1, 5, 6, 8), (3, 3, 8)),
)
Layer = tuple[Node, Graph]
Shapes = tuple[str, tuple[int, ...], tuple[int, ...]]


def _end(op: str, x: tuple[int, ...], w: tuple[int, ...], rule: str,
         factor: float) -> Layer:  # fmt: skip
    axis = 2 if op == "depthwise_conv2d" else 0
    outs = w[axis]
    weights = np.random.default_rng(1).integers(-127, 128, w).astype(np.int8)
    scales = (factor * 2,) * outs
    inputs = (
        tensor(x, INT8, 0.5, -3),
        (w, INT8, Quant(scales, (0,) * outs, axis)),
        ((outs,), INT32, None),
    )
    attrs: dict[str, object] = {"clamp": (None, None), "rounding": rule}
    if op != "dense":
        side = w[1] // 2
        attrs |= {"strides": (1, 1), "dilations": (1, 1), "pads": (side,) * 4}
    if op == "conv2d":
        attrs["groups"] = 1
    bias = np.arange(outs, dtype=np.int32) * 7 - 20
    one = case(op, inputs, tensor((), INT8, 1.0, 5), {1: weights, 2: bias}, **attrs)
    return one.node, one.graph


def _ends(layers: Sequence[Shapes]) -> list[Layer]:
    every = itertools.product(layers, ROUNDINGS, FACTORS)
    return [_end(op, x, w, rule, factor) for (op, x, w), rule, factor in every]


def _rare() -> list[Layer]:
    """What the first layer of an operator and a type does not ask for."""
    product = next(c for c in sums_of_two(DType.INT16) if c.node.op == "mul")
    planes, pairs = (
        weighted_case("depthwise_conv2d", (1, 6, 7, inputs), (3, 3, 8), DType.INT16)
        for inputs in (8, 4)
    )
    return [(c.node, c.graph) for c in (product, planes, pairs, winograd(2))]


@cache
def _layers() -> tuple[Layer, ...]:
    found: dict[object, Layer] = {}
    for one in cases():
        graph = one.graph()
        for node in graph.nodes:
            found.setdefault(
                (node.op, one.dtype, one.name.split("_")[0]), (node, graph)
            )
    hybrid = [
        (node, graph)
        for layer in HYBRID.values()
        for graph in [load("m.tflite", layer.data(), {})]
        for node in graph.nodes
    ]
    hard = (_layer(n, rule, -128, "drawn") for n in (0, 3, 5, 7) for rule in ROUNDINGS)
    plain = [(one.node, one.graph) for one in (*int8_cases()[::4], *hard)]
    return (*_rare(), *found.values(), *plain, *_ends(ENDS), *hybrid)


def _offers(
    core: str, layers: Iterable[Layer], levels: Sequence[str] = ("balanced", "size")
) -> Iterator[Func]:
    for node, graph in layers:
        for optimise in levels:
            for offer in candidates(node, graph, TARGETS[core], optimise):
                if offer.func is not None:
                    yield offer.func


def _forms(core: str, layers: Iterable[Layer]) -> list[Func]:
    """One kernel of each name without numbers."""
    found: dict[str, Func] = {}
    for func in _offers(core, layers):
        found.setdefault(re.sub(r"\d+", "", func.name), func)
    return list(found.values())


@pytest.mark.parametrize("core", CHECKED)
def test_compilers_compile_each_end(core: str, tmp_path: Path) -> None:
    """Of every rule and size of factor: they differ by more than their names say."""
    _must_compile(_forms(core, _ends(ENDS[:1])), core, tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("core", CHECKED)
def test_compilers_compile_each_form(core: str, tmp_path: Path) -> None:
    _must_compile(_forms(core, _layers()), core, tmp_path, "balanced")


def _must_compile(
    funcs: Sequence[Func], core: str, tmp_path: Path, optimise: str = ""
) -> None:
    """By gcc and zig; in little time, or as firmware of that aim is compiled."""
    known = CORES[core]
    text = c_source(funcs).split("int main(")[0]
    text = text[: text.rindex("static int32_t number")]
    # seen from outside, or nothing would be compiled
    text = text.replace("static crt_kernel *const kernels", "crt_kernel *const kernels")
    text = re.sub(r"#include <(math|stdio|stdlib).h>\n", "", text)
    source = tmp_path / "forms.c"
    source.write_text(text)
    for kind in ("gcc", "zig"):
        if find_toolchain(kind, known.arch) is None:
            absent(f"there is no {kind} for {core}")
        chain = choose_toolchain(kind, known)
        level = chain.level(optimise) if optimise else ("-O1",)
        command = [*chain.command, *chain.compile_flags(known), *level]
        command += [f"-I{INCLUDE}", "-c", str(source), "-o", str(tmp_path / "forms.o")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:3000]


# ---- who asks for which writer --------------------------------------------------


def _writers() -> dict[tuple[str, int], str]:
    """Functions that write a kernel or a part of one: file and line -> name."""
    found: dict[tuple[str, int], str] = {}

    def look(path: Path, node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                if isinstance(child, ast.ClassDef) and _is_protocol(child):
                    continue
                name = f"{prefix}{child.name}"
                if isinstance(child, ast.FunctionDef) and _takes_builder(child):
                    first = min(
                        [child.lineno, *(d.lineno for d in child.decorator_list)]
                    )
                    place = path.relative_to(HERE).with_suffix("")
                    found[str(path), first] = f"{place}.{name}"
                look(path, child, f"{name}.")

    for room in WRITERS_OF:
        for path in sorted((HERE / room).glob("*.py")):
            look(path, ast.parse(path.read_text()), "")
    return found


def _is_protocol(made: ast.ClassDef) -> bool:
    return "Protocol" in map(ast.unparse, made.bases)


def _takes_builder(made: ast.FunctionDef) -> bool:
    given = (ast.unparse(a.annotation) for a in made.args.args if a.annotation)
    called = (ast.unparse(c.func) for c in ast.walk(made) if isinstance(c, ast.Call))
    return "Builder" in {*given, *called}


def _asked(core: str, layer: Layer, levels: Sequence[str]) -> set[tuple[str, int]]:
    """File and line of each function that ran while kernels of a layer were made."""
    profile = cProfile.Profile()
    profile.enable()
    for _ in _offers(core, [layer], levels):
        pass
    profile.disable()
    ran = (entry.code for entry in profile.getstats())
    codes = (code for code in ran if isinstance(code, CodeType))
    return {(code.co_filename, code.co_firstlineno) for code in codes}


@pytest.mark.sweep
def test_every_writer_is_asked_for() -> None:
    writers = _writers()
    assert len(writers) > 80
    for core, levels in ASKED.items():
        for layer in _layers():
            for at in _asked(core, layer, levels) if writers else ():
                writers.pop(at, None)
    assert sorted(writers.values()) == []
