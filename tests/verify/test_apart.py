"""A reference that crashes or hangs is a verdict; this process goes on, and nothing is
left of the other."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pybuild
import pybuild.boards.check as on_boards
from pybuild.cli import main
from pybuild.verify import apart
from pybuild.verify.apart import ReferenceCrashed
from pybuild.verify.bench import bench
from pybuild.verify.check import check
from pybuild.verify.child import _answer
from pybuild.verify.judgement import by_standard
from pybuild.verify.layers import debug
from pybuild.verify.reference import NOT_TIMED, reference
from pybuild.verify.wide import wide_sample
from tests.frontends.dead_channels import drawn, tflite
from tests.frontends.onnx.models import NodeSpec
from tests.frontends.onnx.models import model as onnx_model
from tests.frontends.onnx.quantised_nets import quantised
from tests.toolchains import ROOT, require_module
from tests.verify.test_check import elu

CRASH = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
HANG = "import time\ntime.sleep(60)\n"
ENOUGH = 6.0  # for the process to begin
FAKE = {"crash": CRASH, "hang": HANG}
CRASHED = "signal 11" if os.name == "posix" else "exit code 0xb"
SAID = {
    "crash": f"crashed ({CRASHED})",
    "hang": f"gave no answer in {ENOUGH:g} seconds",
}
INTERPRETER = "ai_edge_litert/interpreter.py"
# LiteRT without a reference kernel; its other kernels run this
LACKING = """
class OpResolverType:
    BUILTIN_REF, BUILTIN_WITHOUT_DEFAULT_DELEGATES = 1, 2


class Interpreter:
    def __init__(self, experimental_op_resolver_type, **more):
        if experimental_op_resolver_type == OpResolverType.BUILTIN_REF:
            raise ValueError("Didn't find op for builtin opcode 'ELU'")
        exec({code!r})
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.tflite"
    path.write_bytes(tflite("dense", drawn("dense", [], 0)))
    return path


@contextmanager
def faked(folder: Path, code: str, file: str = INTERPRETER) -> Iterator[None]:
    """An interpreter as this code, in the process that is started next; of that process
    nothing is left."""
    path = folder / "fake" / file
    path.parent.mkdir(parents=True)
    (path.parent / "__init__.py").write_text("__version__ = '0'\n")
    path.write_text(code)
    apart.close()
    before = held()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path.parents[1]))
        patch.setattr(apart, "SECONDS", ENOUGH if "sleep" in code else 60.0)
        yield
    assert not apart._children
    assert held() <= before


def held() -> set[tuple[str, str]]:
    """Pipes and processes of this one, where /proc tells them."""
    gc.collect()
    if not Path("/proc/self/fd").is_dir():
        return set()
    files = [f for f in Path("/proc/self/fd").iterdir() if f.is_symlink()]
    named = {("file", os.readlink(f)) for f in files}
    tasks = Path("/proc/self/task").glob("*/children")
    children = {("process", n) for task in tasks for n in task.read_text().split()}
    return children | {one for one in named if "pipe:" in one[1]}


def on_any_board(model: Path) -> None:
    """As `crt check --on BOARD`, of a board that gives what this machine gives."""
    library = pybuild.build(model)
    program = SimpleNamespace(library=library, fit=None)
    device: Any = SimpleNamespace(
        board=SimpleNamespace(name="any"), toolchain="gcc",
        simulator=SimpleNamespace(name="none"),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_boards, "program_of", lambda *given: program)
        patch.setattr(
            on_boards, "run_program",
            lambda device, program, given: on_boards.on_host(library, given, False),
        )  # fmt: skip
        on_boards.check_on_board(device, library, model, 2, ref="auto")


def of_samples(model: Path) -> None:
    graph = pybuild.build(model).plan.graph
    x = np.zeros((2, *graph.tensor(graph.inputs[0]).shape[1:]), np.float32)
    pybuild.check(model, x, backends=("llvm",))


WAYS: dict[str, Callable[[Path], object]] = {
    "check": lambda model: check(model, pybuild.build(model), ("llvm",), samples=2),
    "check of samples": of_samples,
    "check on a board": on_any_board,
    "debug": lambda model: debug(model, pybuild.build(model), ref="litert"),
    "bench": lambda model: bench(pybuild.build(model), runs=1, against=model),
}


@pytest.mark.parametrize(
    ("way", "how"),
    [*((way, "crash") for way in WAYS), ("check", "hang"), ("bench", "hang")],
)
def test_it_is_a_verdict(way: str, how: str, model: Path, tmp_path: Path) -> None:
    with faked(tmp_path, FAKE[how]), pytest.raises(ReferenceCrashed) as error:
        WAYS[way](model)
    (problem,) = error.value.problems
    assert (problem.where, problem.what) == ("m.tflite", f"LiteRT {SAID[how]}")
    assert problem.hint == (NOT_TIMED if way == "bench" else "--ref numpy")


@pytest.mark.parametrize("words", [["check"], ["bench", "--against", "litert"]])
def test_the_command_tells_it(
    words: list[str], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*words, str(model), "--backend", "llvm"]
    with faked(tmp_path, CRASH):
        assert main(command) == apart.CRASHED == 4
    said = capsys.readouterr().err
    assert f"m.tflite: LiteRT crashed ({CRASHED}). Hint: " in said
    assert "Traceback" not in said
    require_module("ai_edge_litert")
    assert main(command) == 0  # by another process


@pytest.mark.parametrize("how", FAKE)
def test_other_kernels_are_a_note(how: str, tmp_path: Path) -> None:
    """Our own numpy model is the reference there, and has its say."""
    path = tmp_path / "elu.tflite"
    path.write_bytes(elu((0.25,)))
    library = pybuild.build(path)
    with faked(tmp_path, LACKING.format(code=FAKE[how])):
        found = check(path, library, ("llvm",), samples=2)
    assert found.ok and f"LiteRT's other kernels {SAID[how]}" in found.notes


def test_why_onnx_runtime_differs_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "pooled.onnx"
    path.write_bytes(quantised("AveragePool", "qdq"))
    graph = pybuild.build(path).plan.graph
    given = {n: np.zeros(graph.tensor(n).shape, np.float32) for n in graph.inputs}
    right = reference("standard", path, graph).run(given)
    right = {name: right[name] for name in graph.outputs}
    theirs = {name: value + 1 for name, value in right.items()}
    with faked(tmp_path, CRASH, "onnxruntime/__init__.py"):
        fair = by_standard(path, graph, [theirs], [given], {"llvm": [right]})
    assert fair is not None and fair.ok
    assert fair.note.endswith(f"(why is not known: ONNX Runtime {SAID['crash']})")


def test_what_is_held_is_what_somebody_has(model: Path) -> None:
    require_module("ai_edge_litert")
    graph = pybuild.build(model).plan.graph
    tensors = map(graph.tensor, graph.inputs)
    x = {t.name: np.zeros(t.shape, t.dtype.numpy) for t in tensors}
    known = [reference("litert", model, graph) for _ in range(6)]
    found = [one.run(x)[graph.outputs[0]].tobytes() for one in known]
    assert len(set(found)) == 1
    gc.collect()
    apart._gone.clear()
    del known[1:3]
    assert len(apart._gone) == 2
    known[0].run(x)
    assert not apart._gone


def test_what_nobody_has_is_given_up() -> None:
    held: dict[int, apart.Run] = {n: lambda given: {**given} for n in (1, 2, 3)}
    assert _answer(held, {"gone": [1, 3, 9], "number": 2}, {}) == ({}, {})
    assert [*held] == [2]


@pytest.mark.skipif(os.name != "posix", reason="kills by a signal")
def test_it_ends_with_the_one_that_asks(model: Path, tmp_path: Path) -> None:
    """Also by SIGKILL, while an interpreter hangs: nobody is left to hold the pipe."""
    begun = tmp_path / "begun"
    code = f"open({str(begun)!r}, 'w').close()\n{HANG}"
    check_it = "import sys\nfrom pybuild.cli import main\nmain(sys.argv[1:])\n"
    with faked(tmp_path, code):
        paths = [str(tmp_path / "fake"), str(ROOT)]
        asker = subprocess.Popen(
            [sys.executable, "-c", check_it, "check", str(model), "--backend", "llvm"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        end = time.monotonic() + 60
        while not begun.exists() and time.monotonic() < end:
            time.sleep(0.05)
        asker.kill()
        asker.communicate(timeout=30)
    assert begun.exists()


def test_a_float_input_has_a_wide_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b = pybuild.GraphBuilder("wide")
    x = b.input("x", (1, 64))
    b.output(b.op("tanh", x), "y")
    wide = wide_sample(b.build())
    assert wide is not None and wide.most == 1e30
    values = wide.sample.inputs["x"]
    assert np.isfinite(values).all() and (values > 0).any() and (values < 0).any()
    assert np.abs(values).max() > 1e20 and np.abs(values).min() < 1e-20
    made = check("wide", pybuild.build(b.build()), ("llvm",), "numpy", 2)
    assert made.to_json()["wide"]["inputs"] == ["x"]
    onnx = tmp_path / "tanh.onnx"
    nodes: list[NodeSpec] = [("Tanh", ["x"], ["y"], {})]
    onnx.write_bytes(onnx_model(nodes, {"x": np.zeros((1, 64), np.float32)}, ["y"]))
    assert main(["check", str(onnx), "--backend", "llvm"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "and a wide one: x of both signs, magnitudes 1e-30 to 1e+30" in said


def test_sums_of_a_wide_sample_are_finite() -> None:
    """The sum of a mean is finite in numpy, which has float64, and has to be in a
    kernel: squares of a norm are close to the greatest float32."""
    b = pybuild.GraphBuilder("wide")
    x = b.input("x", (1, 64))
    squares = b.op("mul", x, x)
    b.output(b.op("mean", squares, axes=(1,), keepdims=True), "y")
    wide = wide_sample(b.build())
    assert wide is not None and wide.most == 1e12
    x1 = wide.sample.inputs["x"].astype(np.float64)
    assert (x1 * x1).sum() < 1e-4 * np.finfo(np.float32).max
