"""Names and arguments of scripts for TVM's runtime, as they are there: what a script
changes is `tvm` to `pybuild`.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import pybuild as tvm
from pybuild import relay, rpc
from pybuild.contrib import graph_executor, utils
from pybuild.contrib.debugger import debug_executor
from pybuild.errors import BuildError
from pybuild.library import Library
from pybuild.ops.interpret import interpret
from tests.frontends.graphjson.tvm_graphs import simple
from tests.graphs.networks import classifier

ADD = [tvm.function("myadd", op="add")]
DEV = tvm.cpu(0)


@pytest.fixture(scope="module")
def library() -> Library:
    return tvm.build(classifier("tiny").model(), "llvm", params="replaceable")


def adder() -> graph_executor.GraphModule:
    return graph_executor.create(json.dumps(simple()), ADD, DEV)


def test_modules_are_where_tvm_has_them() -> None:
    import pybuild.contrib.debugger.debug_executor
    import pybuild.runtime.ndarray

    assert tvm.nd is pybuild.runtime.ndarray
    assert pybuild.contrib.graph_executor.create is tvm.graph_executor.create
    assert debug_executor.create is tvm.debug_executor.create
    assert tvm.contrib.utils is utils
    for name in ("array", "empty", "cpu", "device", "NDArray"):
        assert getattr(tvm.nd, name) is getattr(tvm.runtime, name)
    assert issubclass(rpc.RemoteError, tvm.TVMError)


def test_a_temporary_folder_ends_with_the_script() -> None:
    folder = utils.tempdir()
    path = tvm.runtime.params.Path(folder.relpath("deploy.params"))
    assert path.parent == folder.path
    tvm.runtime.save_param_dict_to_file({"w": np.ones(2)}, path)
    folder.remove()
    assert not path.parent.exists()


def test_errors_are_caught_as_tvm_s() -> None:
    made = adder()
    for wrong in (lambda: made.get_output(0), lambda: made.set_input("q", 0), made.run):
        with pytest.raises(tvm.TVMError):
            wrong()


def test_arrays_take_a_device() -> None:
    there = tvm.device("ext_dev", 1)
    assert tvm.nd.array(np.ones(2), device=there).device == there == tvm.ext_dev(1)
    assert tvm.nd.empty((2, 3), "int8", device=there).device == there
    assert tvm.nd.empty((2,), device=DEV).dtype == "float32"
    assert (DEV.device_type, there.device_type) == (1, 12)
    assert DEV.exist and not there.exist and not tvm.cpu(1).exist
    with pytest.raises(TypeError, match="mem_scope"):
        tvm.nd.empty((2,), mem_scope="global")


def test_memory_is_handed_over_by_dlpack() -> None:
    there = tvm.nd.array(np.arange(3.0))
    again = tvm.nd.from_dlpack(there.to_dlpack())
    assert again.ctypes.data == there.ctypes.data
    plain = np.zeros(2, np.int8)
    tvm.nd.from_dlpack(plain)[1] = 7
    assert plain.tolist() == [0, 7]
    assert np.from_dlpack(there).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="list gives no memory"):
        tvm.nd.from_dlpack([1])


@pytest.mark.parametrize(
    ("want", "value", "lost"),
    [
        ("float32", np.full(4, 16777217, np.int32), "16777217"),
        ("float32", np.full(4, 1e300), "1e+300"),
        ("float32", [0, 0, 2**25 + 1, 0], "33554433"),
    ],
)
def test_no_value_is_lost_silently(want: str, value: object, lost: str) -> None:
    made = adder()
    with pytest.raises(ValueError, match=rf"'x' is {want}\[4\], which cannot hold"):
        made.set_input("x", value)
    with pytest.raises(ValueError, match=lost.replace("+", r"\+")):
        tvm.nd.empty((4,), want).copyfrom(value)
    made.set_input("x", np.full(4, 2**25, np.int32))
    made.set_input("y", np.array([np.inf, np.nan, 0.1, -1]))


def test_the_order_of_bytes_is_said() -> None:
    big = np.arange(4).astype(">f4")
    with pytest.raises(ValueError, match=r"not float32\[4\] with bytes in big-endian"):
        adder().set_input_zero_copy("x", big)
    made = adder()
    made.run(x=big, y=big)
    assert made.get_output(0).tolist() == [0, 2, 4, 6]


def test_a_build_is_three_things_too(library: Library) -> None:
    graph, lib, params = library
    made = graph_executor.create(graph, lib, DEV)
    made.load_params(relay.save_param_dict(params))
    again = graph_executor.GraphModule(library["default"](DEV))
    x = np.ones((1, 8, 8, 3), np.int8)
    made.run(image=x)
    again.run(image=x)
    np.testing.assert_array_equal(made.get_output(0), again.get_output(0))
    assert len(params) == 6


def test_targets_mean_what_they_mean_there(tmp_path) -> None:
    graph = classifier("tiny").graph()
    assert tvm.build(graph, "llvm").backend == "llvm"
    assert tvm.build(graph, "c").backend == "c"
    assert tvm.build(graph, target="llvm").backend == "llvm"
    assert relay.build(graph, "llvm", mod_name="net").mod_name == "net"
    folder = tmp_path / "llvm"
    assert tvm.build(graph, folder).options.target == "generic" and folder.is_dir()
    assert tvm.device("llvm -mcpu=core2") == tvm.cpu(0)
    with pytest.raises(BuildError, match=r"-mcpu=core2 is not used here.*cortex-m4"):
        tvm.build(graph, "llvm -mcpu=core2")
    with pytest.raises(BuildError, match="is a target, and so is 'cortex-m4'"):
        tvm.build(graph, "c", target="cortex-m4")
    with pytest.raises(BuildError, match="out: is for one model"):
        tvm.build({"a": graph}, tmp_path)
    with pytest.raises(BuildError, match="weights: is for one model"):
        tvm.build({"a": graph}, weights={})


@pytest.mark.parametrize("how", ["weights", "params", "bytes", "relay", "model"])
def test_weights_beside_a_graph_are_taken(how: str) -> None:
    graph = classifier("tiny").graph()
    want = np.zeros_like(graph.constants["logits/w"])
    given = {"logits/w": want}
    if how == "params":
        library = tvm.build(graph, params=given, target="llvm")
        assert sorted(library.parameters) == ["logits/w"]
    elif how == "relay":
        library = relay.build(graph, params=given)
        assert len(library.parameters) == 6
    elif how == "bytes":
        blob = relay.save_param_dict({**given, "passed/over": want})
        library = tvm.build(graph, weights=bytes(blob), target="llvm")
    else:
        what = classifier("tiny").model() if how == "model" else graph
        library = tvm.build(what, weights=given, target="llvm")
    made, x = library["default"](DEV), np.ones((1, 8, 8, 3), np.int8)
    made.run(image=x)
    changed = dataclasses.replace(graph, constants={**graph.constants, **given})
    lowered = tvm.Model("x", changed, "litert", "").lower()
    np.testing.assert_array_equal(
        made.get_output(0), interpret(lowered, {"image": x})["scores"]
    )
    assert library.model.digest != tvm.build(graph).model.digest
    assert tvm.build(what, weights={}) if how == "model" else True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weights": {"none": 1}}, "there is no 'none'"),
        ({"params": {"none": 1}}, "there is no 'none'"),
        ({"weights": {"dense_w": np.zeros((10, 64), np.int8)}}, "not int8"),
        ({"weights": {"dense_w": np.zeros((10, 12))}}, "is int8.*not float64"),
        ({"weights": b"nothing"}, "holds no parameters"),
        ({"weights": {}, "params": {}}, "given by params, too"),
        ({"functions": ADD}, "are for a graph JSON"),
    ],
)
def test_nothing_beside_a_file_is_dropped(options: dict, said: str) -> None:
    digits = "examples/digits/digits_int8.tflite"
    for what in (digits, tvm.load(digits), tvm.load(digits).graph):
        with pytest.raises(BuildError, match=said):
            tvm.build(what, **options)
    blob = relay.save_param_dict({"none": np.zeros(1, np.int8)})
    with pytest.raises(BuildError, match="there is no 'none'"):
        tvm.build(digits, weights=bytes(blob))


def test_weights_that_a_graph_json_does_not_know_are_an_error() -> None:
    with pytest.raises(BuildError, match="weights: there is no 'w'"):
        tvm.build(json.dumps(simple()), functions=ADD, weights={"w": np.zeros(1)})


# as it was written for TVM: a library that was exported, with and without weights
SCRIPT = """
import numpy as np
import tvm
from tvm import relay, runtime
from tvm.contrib import graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.runtime import ndarray
from tvm.error import TVMError

folder = utils.tempdir()
library = tvm.runtime.load_module("tiny.so")
dev = tvm.device("cpu", 0)
module = graph_executor.GraphModule(library["default"](dev))
image = tvm.nd.array(np.ones((1, 8, 8, 3), "int8"), dev)
module.set_input("image", image)
module.run()
scores = module.get_output(0, ndarray.empty((1, 5), "int8", dev)).numpy()
assert module.get_output(0).asnumpy().tolist() == scores.tolist()
timer = module.module.time_evaluator("run", dev, number=2, repeat=2)
assert len(timer().results) == 2
assert module.benchmark(dev, repeat=1, number=1, end_to_end=True).mean > 0
graph, params = library["get_graph_json"](), library["get_graph_params"]()
blob = relay.save_param_dict(params)
runtime.save_param_dict_to_file(params, folder.relpath("tiny.params"))
late = graph_executor.create(graph, library, dev)
late.load_params(bytearray(open(folder.relpath("tiny.params"), "rb").read()))
shared = graph_executor.create(graph, library, dev)
shared.share_params(late, blob)
debug = debug_executor.create(graph, library, dev, dump_root=folder.relpath("dump"))
debug.load_params(blob)
for one in (late, shared, debug):
    one.set_input(image=image)
    one.run()
    assert one.get_output(0).numpy().tolist() == scores.tolist()
try:
    module.get_output(1)
except TVMError as error:
    print(len(params), type(error).__name__, scores.tolist())
"""


def test_a_script_runs_after_sed(library: Library, tmp_path: Path) -> None:
    """sed 's/tvm/pybuild/': the first word of each line."""
    library.export_library(tmp_path / "tiny.so")
    script = tmp_path / "script.py"
    lines = SCRIPT.splitlines(keepends=True)
    script.write_text("".join(line.replace("tvm", "pybuild", 1) for line in lines))
    assert "tvm" not in script.read_text()
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    made = graph_executor.GraphModule(library["default"](DEV))
    made.run(image=np.ones((1, 8, 8, 3), np.int8))
    want = f"6 UnknownName {made.get_output(0).numpy().tolist()}"
    assert done.stdout.splitlines()[-1] == want


PAGE = Path(__file__).resolve().parents[2] / "docs" / "from-tvm.md"
REFUSED = PAGE.read_text().partition("| call | why |")[2].partition("##")[0]


@pytest.mark.parametrize("said", re.findall(r"^\| (`.*?) \|", REFUSED, re.MULTILINE))
def test_calls_that_differ_are_errors(library: Library, said: str) -> None:
    """What docs/from-tvm.md lists."""
    module = graph_executor.GraphModule(library["default"](DEV))
    image = np.ones((1, 8, 8, 3), np.int8)
    module.run(image=image)
    names = {
        "tvm": tvm, "rpc": rpc, "lib": library, "dev": DEV, "module": module,
        "image": image, "graph": classifier("tiny").graph(),
        "graph_executor": graph_executor,
    }  # fmt: skip
    loud = (RuntimeError, ValueError, TypeError, BuildError)
    for call in re.findall(r"`(.*?)`", said):
        with pytest.raises((*loud, AttributeError)):
            eval(call, names)


def test_what_is_enabled() -> None:
    assert all(map(tvm.runtime.enabled, ("llvm", "llvm -device=x", "rpc", "cpu")))
    assert not any(map(tvm.runtime.enabled, ("cuda", "opencl", "")))
    assert tvm.runtime.enabled("c") == bool(shutil.which("cc"))


def test_functions_and_keys_of_modules(library: Library) -> None:
    made = library.get_function("default")(DEV)
    assert (library.type_key, made.type_key) == (
        "GraphExecutorFactory",
        "GraphExecutor",
    )
    assert made.module.get_function("get_num_outputs")() == 1


def test_an_output_is_bound_by_tvm_s_name() -> None:
    """NAME:POSITION, as set_output_zero_copy has it there."""
    made, out = adder(), np.zeros(4, np.float32)
    made.set_output_zero_copy("add:0", out)
    made.run(x=np.ones(4, np.float32), y=np.ones(4, np.float32))
    assert out.tolist() == [2, 2, 2, 2]
    assert made.get_output("add:0").tolist() == [2, 2, 2, 2]
    for wrong in ("add:1", "x:0", "add:", "add:zero"):
        with pytest.raises(tvm.TVMError, match="'add'"):
            made.set_output_zero_copy(wrong, out)


def test_an_evaluator_flushes_and_prepares() -> None:
    made, seen = adder(), []
    made.set_input(x=np.ones(4, np.float32), y=np.ones(4, np.float32))
    timer = made.module.time_evaluator(
        "run", DEV, 2, 3, cache_flush_bytes=1 << 16, f_preproc=lambda: seen.append(1)
    )
    assert len(timer().results) == 3 and len(seen) == 3
    with pytest.raises(ValueError, match="no function 'cache_flush'"):
        made.time_evaluator("run", DEV, f_preproc="cache_flush")
    with pytest.raises(ValueError, match="cache_flush_bytes is -1"):
        made.time_evaluator("run", DEV, cache_flush_bytes=-1)()


def test_the_device_of_a_measurement_is_looked_at() -> None:
    made, x = adder(), np.ones(4, np.float32)
    with pytest.raises(ValueError, match=r"is on cpu\(0\), not on ext_dev\(0\)"):
        made.time_evaluator("run", tvm.ext_dev())
    with pytest.raises(ValueError, match=r"not on ext_dev\(0\)"):
        made.benchmark(tvm.ext_dev(), x=x, y=x)
    with pytest.raises(ValueError, match="end_to_end measures run"):
        made.benchmark(DEV, "get_num_inputs", end_to_end=True, x=x, y=x)
    with pytest.raises(ValueError, match="copied to cpu"):
        made.run_from_inputs(12, 0, "x", x, "y", x)


def test_no_graph_is_an_error_that_says_so() -> None:
    for text in ("", " ", "graph.json"):
        with pytest.raises(BuildError, match=r"graph JSON: .*is not a graph JSON"):
            graph_executor.create(text, ADD, DEV)


def test_images_take_graphs_and_paths() -> None:
    graph = classifier("one").graph()
    made = tvm.build_image({"one": graph, "two": "examples/digits/digits_int8.tflite"})
    assert [model.name for model in (made["one"], made["two"])] == ["one", "two"]


# what a signature walk looks at: the calls that scripts make
CALLS = (
    "pybuild.graph_executor", "pybuild.debug_executor", "pybuild.relay",
    "pybuild.executor.module", "pybuild.executor.debug", "pybuild.executor.timed",
    "pybuild.executor.factory", "pybuild.host.ndarray", "pybuild.runtime.params",
    "pybuild.runtime.module", "pybuild.entry", "pybuild.image", "pybuild.model",
    "pybuild.library", "pybuild.executor.inputs", "pybuild.executor.parameters",
    "pybuild.executor.profile", "pybuild.host.native", "pybuild.host.binding",
    "pybuild.host.named_tensors", "pybuild.host.timing", "pybuild.rpc.address",
    "pybuild.rpc.net", "pybuild.rpc.remote", "pybuild.contrib.utils",
    "pybuild.relay.frontend", "pybuild.testing",
)  # fmt: skip
# arguments that other libraries hand over; errors that are the whole of a call
UNUSED = {("__dlpack__", "asked"), ("debug_get_output", "node"),
          ("debug_get_output", "out"), ("__exit__", "exception"),
          ("_nothing", "arguments"), ("_target", "library")}  # fmt: skip


@pytest.mark.parametrize("module", CALLS)
def test_no_call_accepts_what_it_ignores(module: str) -> None:
    source = inspect.getsource(importlib.import_module(module))
    ignored = set()
    for node in ast.walk(ast.parse(textwrap.dedent(source))):
        if not isinstance(node, ast.FunctionDef) or _is_abstract(node):
            continue
        args = node.args
        named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        named += [a for a in (args.vararg, args.kwarg) if a is not None]
        read = {
            n.id
            for part in node.body
            for n in ast.walk(part)
            if isinstance(n, ast.Name)
        }
        if "locals" in read:  # each is looked up in the table of options
            continue
        ignored |= {
            (node.name, a.arg) for a in named if a.arg not in {*read, "self", "cls"}
        }
    assert ignored - UNUSED == set()


def _is_abstract(node: ast.FunctionDef) -> bool:
    body = [part for part in node.body if not isinstance(part, ast.Expr)]
    return not body or any("overload" in ast.dump(d) for d in node.decorator_list)
