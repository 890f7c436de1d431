"""C functions of the user: in the LLVM and the C back end, in the tree, and wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild import build
from pybuild.errors import BuildError
from pybuild.host import jit
from pybuild.host.parameter_image import Weights
from pybuild.ops.base.function import Function
from tests.frontends.graphjson.tvm_graphs import call, duplex, graph, null, simple
from tests.frontends.onnx.test_functions import BACKENDS, runs
from tests.toolchains import STRICT, require, run

F = np.float32
# a: rank and length of each tensor; or with flatten_data, 1 and the size
TEXT = """\
/* y = x OP z, for crt. */
#include "crt/abi.h"

void NAME(void *const *p, const int32_t *a);

void NAME(void *const *p, const int32_t *a)
{
    float *y = (float *)p[0];
    const float *x = (const float *)p[1];
    const float *z = (const float *)p[2];
    int32_t i;

    for (i = 0; i < a[1]; i++)
        y[i] = x[i] OP z[i];
}
"""


def by_symbol(name: str, op: str, symbol: str = "") -> Function:
    symbol = symbol or f"my_{name}"
    text = TEXT.replace("NAME", symbol).replace("OP", op)
    return pybuild.function(name, symbol=symbol, source=text)


@pytest.mark.parametrize("storage", ["planned", "given"])
def test_duplex(storage: str) -> None:
    library = [by_symbol("elemwise_add", "+"), by_symbol("elemwise_sub", "-")]
    rng = np.random.default_rng(1)
    values = {n: rng.standard_normal(4).astype(F) for n in "ABCD"}
    want = values["A"] + values["B"] - values["C"] + values["D"]
    for made in runs(duplex(devices=False), library, values, storage=storage):
        np.testing.assert_array_equal(made["add2"], want)


@pytest.mark.parametrize("optimise", ["balanced", "speed"])
def test_weights_stand_where_the_node_has_them(optimise: str) -> None:
    """crt hands constants over last; the function sees its own order."""
    a, w = np.arange(4, dtype=F), np.array([5, 6, 7, 9], F)
    for params, inputs, want in (
        ({}, {"x": a, "y": w}, a - w),
        ({"y": w}, {"x": a}, a - w),
        ({"x": w}, {"y": a}, w - a),
        ({"x": a, "y": w}, {}, a - w),
    ):
        library = build(
            json.dumps(simple("f")),
            functions=by_symbol("f", "-"),
            weights=params,
            optimise=optimise,
        )
        for backend in BACKENDS:
            net = library.host(backend)
            net.run(**inputs)
            np.testing.assert_array_equal(net.get_output("add"), want)


def test_replaceable_weights() -> None:
    w = np.full(4, 5, F)
    library = build(
        json.dumps(simple("f")),
        functions=by_symbol("f", "-"),
        weights={"x": np.ones(4, F)},
        params="replaceable",
    )
    for backend in BACKENDS:
        net = library.host(backend)
        net.load_params(Weights(library.image({"x": w})))
        net.run(y=np.ones(4, F))
        np.testing.assert_array_equal(net.get_output("add"), w - 1)


def test_two_orders_of_one_function() -> None:
    nodes = [null("x"), null("w"), call("a", "f", [[0, 0], [1, 0]])]
    nodes += [call("b", "f", [[1, 0], [2, 0]]), call("c", "f", [[3, 0], [0, 0]])]
    top = graph(nodes, [0, 1], [[4, 0]], [[4]] * 5)
    x, w = np.arange(4, dtype=F), np.array([5, 6, 7, 9], F)
    library = by_symbol("f", "-")
    for made in runs(top, library, {"x": x}, {"w": w}):
        np.testing.assert_array_equal(made["c"], (w - (x - w)) - x)
    kernels = build(json.dumps(top), functions=library, weights={"w": w}).tables.kernels
    assert [func.name for func, _ in kernels] == ["call_my_f", "call_my_f_2"]


def test_flat_arguments() -> None:
    """The function reads one length, which is all of a flat tensor."""
    x = np.arange(6, dtype=F).reshape(2, 3)
    for flat, want in (("0", 2), ("1", 6)):
        top = simple("f", [2, 3])
        top["nodes"][2]["attrs"]["flatten_data"] = flat
        for made in runs(top, [by_symbol("f", "+")], {"x": x, "y": x}):
            np.testing.assert_array_equal(made["add"].reshape(-1)[:want],
                                          (x + x).reshape(-1)[:want])  # fmt: skip


def test_same_symbol_in_two_models_at_once() -> None:
    """Each instance calls its own."""
    nets = {}
    for op in "+-":
        library = build(json.dumps(simple("f")), functions=by_symbol("f", op))
        nets[op] = library.host()
    x, y = np.arange(4, dtype=F), np.ones(4, F)
    for net in nets.values():
        net.run(x=x, y=y)
    np.testing.assert_array_equal(nets["+"].get_output("add"), x + y)
    np.testing.assert_array_equal(nets["-"].get_output("add"), x - y)


def test_the_tree_compiles_and_agrees_with_itself(tmp_path: Path) -> None:
    """Strictly, with make; the self-test holds what the function gave here."""
    make, compiler = require("make"), require("gcc")
    source = tmp_path / "sub.c"
    source.write_text(TEXT.replace("NAME", "my_sub").replace("OP", "-"))
    function = pybuild.function("f", symbol="my_sub", source=source)
    w = np.arange(4, dtype=F)
    out = tmp_path / "out"
    build(
        json.dumps(simple("f")), out, functions=function, weights={"x": w}, name="net"
    )
    assert (out / "sub.c").read_text() == source.read_text()
    assert str(tmp_path) not in "".join(p.read_text() for p in out.rglob("*.[ch]"))
    flags = f"CFLAGS={' '.join(STRICT)}"
    printed = run([make, "-s", "-C", out, f"CC={compiler}", flags, "run"])
    assert "self-test: no error" in printed


def test_a_function_of_the_firmware(tmp_path: Path) -> None:
    """Without source: the tree needs a reference, and nothing runs here."""

    def linked(**more: Any) -> pybuild.Library:
        function = pybuild.function("f", symbol="elsewhere", **more)
        return build(json.dumps(simple("f")), functions=function)

    text = "function 'elsewhere': is linked from elsewhere, so it cannot run on this "
    text += "machine. Hint: give source=, or reference= for a self-test"
    for make in (linked().host, linked().files, lambda: linked().host("c")):
        assert said(make) == [text]
    files = linked(reference=lambda x, y: x + y).files()
    assert "void elsewhere(void *const *p, const int32_t *a);" in files["graph.c"]
    assert "elsewhere.c" not in files


# ---- mistakes -------------------------------------------------------------------


def said(make: Callable[[], object]) -> list[str]:
    with pytest.raises(BuildError) as caught:
        make()
    return str(caught.value).splitlines()


def test_a_file_that_does_not_define_the_symbol() -> None:
    text = TEXT.replace("NAME", "other").replace("OP", "+")
    function = pybuild.function("f", symbol="my_f", source=text)
    library = build(json.dumps(simple("f")), functions=function)
    assert said(library.host) == ["function 'my_f': my_f.c does not define it"]


def test_a_file_that_does_not_compile() -> None:
    function = pybuild.function("f", symbol="my_f", source="int x = ;\n")
    library = build(json.dumps(simple("f")), functions=function)
    for backend in BACKENDS:
        first = said(lambda b=backend: library.host(b))[0]  # type: ignore[misc]
        assert "cannot compile" in first and "my_f.c:1" in first


def test_a_file_that_calls_what_is_not_there() -> None:
    text = "void lost(void);\n" + TEXT.replace("NAME", "my_f").replace("OP", "+")
    text = text.replace("{", "{\n    lost();", 1)
    function = pybuild.function("f", symbol="my_f", source=text)
    library = build(json.dumps(simple("f")), functions=function)
    for backend in BACKENDS:
        first = said(lambda b=backend: library.host(b))[0]  # type: ignore[misc]
        assert "cannot be loaded" in first and "lost" in first


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    library = build(json.dumps(simple("f")), functions=by_symbol("f", "+"))
    monkeypatch.setattr(jit, "host_compiler", lambda: ())
    assert said(library.host) == [
        "function 'my_f': there is no C compiler. Hint: pip install ziglang, or give "
        "loop= in place of symbol="
    ]
    loops = build(json.dumps(simple("f")), functions=pybuild.function("f", op="add"))
    loops.host()


def test_two_files_of_one_name(tmp_path: Path) -> None:
    functions = []
    for op, name in (("+", "elemwise_add"), ("-", "elemwise_sub")):
        path = tmp_path / name / "f.c"
        path.parent.mkdir()
        path.write_text(TEXT.replace("NAME", name).replace("OP", op))
        functions.append(pybuild.function(name, symbol=name, source=path))
    library = build(json.dumps(duplex(devices=False)), functions=functions)
    text = "another file is named 'f.c' too. Hint: rename it"
    assert said(library.files) == [f"function 'elemwise_sub': {text}"]
    own = by_symbol("f", "+", "graph")
    library = build(json.dumps(simple("f")), functions=own)
    text = "another file is named 'graph.c' too. Hint: rename it"
    assert said(library.sources) == [f"function 'graph': {text}"]


@pytest.mark.parametrize("name", ["my file.c", "x.cpp", "$(x).c"])
def test_names_that_no_build_file_can_hold(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(TEXT)
    assert said(lambda: pybuild.function("f", symbol="f", source=path)) == [
        f"function 'f': '{name}' is not a name of a C file. Hint: letters, digits and "
        "_ . - are allowed, and it must end in .c"
    ]
