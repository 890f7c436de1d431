"""Libraries of functions that make no sense, and graphs that they do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import pybuild
from pybuild import build
from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.ir.loop import FLOAT32, Binary, Func, Let, PointerType, Row, Var, const
from pybuild.ops import OPERATORS
from tests.frontends.graphjson.tvm_graphs import duplex, simple
from tests.frontends.onnx.test_functions import by_loop, by_op, elementwise, size


def said(make: Callable[[], object]) -> list[str]:
    with pytest.raises(BuildError) as caught:
        make()
    return str(caught.value).splitlines()


def test_unresolved_functions_list_what_there_is() -> None:
    library = [by_op("elemwise_add", "+"), by_loop("other", "-")]
    assert said(lambda: build(json.dumps(duplex()), functions=library)) == [
        "graph.json: the function 'elemwise_sub', which sub calls, is not in the "
        "library. Hint: the library has elemwise_add, other"
    ]
    top = duplex()
    assert said(lambda: build(json.dumps(top), functions=[by_op("x", "+")])) == [
        "graph.json: the function 'elemwise_add', which add1, add2 call, is not in the "
        "library. Hint: the library has x",
        "graph.json: the function 'elemwise_sub', which sub calls, is not in the "
        "library. Hint: the library has x",
    ]


def test_operators_check_types() -> None:
    top = simple(shape=[2, 3])
    top["attrs"]["shape"][1][2] = [3, 2]
    assert said(lambda: build(json.dumps(top), functions=[by_op("myadd", "+")])) == [
        "graph.json: node 'add' (add): 'add' is float32[3, 2], it must be float32[2, 3]"
    ]


LOOP = elementwise("loop", "+")
N = Var("n", DType.INT32)
ANY_ROW = Row(Binary("+", N, const(0)), PointerType(FLOAT32))
DYNAMIC = Func("dynamic", (N,), (), (Let(Var("r", PointerType(FLOAT32)), ANY_ROW),))
MISTAKES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("f", {}, ["is none of op=, symbol=, loop=. Hint: give exactly one"]),
    ("f", {"op": "add", "loop": LOOP},
     ["is several of op=, symbol=, loop=. Hint: give exactly one"]),
    ("__nop", {"op": "add"},
     ["is a name that every executor has. Hint: take another"]),
    ("", {"op": "add"}, ["has no name. Hint: take another"]),
    ("f", {"op": "ad"}, ["the operator 'ad' does not exist. Hint: one of "
     f"{', '.join(sorted(OPERATORS.keys() - {'call'}))}"]),
    ("f", {"op": "softmax", "axis": -1}, ["has no attribute 'beta'",
     "'axis' is -1, it must be an integer from 0"]),
    ("f", {"loop": LOOP, "axis": 1}, ["has attributes (axis), but names no operator. "
     "Hint: symbols and loops take arguments="]),
    ("f", {"op": "add", "arguments": [1]},
     ["arguments= and reference= are not for operators"]),
    ("f", {"loop": LOOP, "source": "x.c"},
     ["has source= without symbol=. Hint: symbol= is the C function's name"]),
    ("f", {"symbol": "a b"}, ["'a b' is not a name of a C function"]),
    ("f", {"loop": "x"}, ["loop= is not a pybuild.ir.loop.Func"]),
    ("f", {"loop": Func("k", (), (), (Let(Var("x", FLOAT32), const(1)),))},
     ["kernel k: 'x': DType.FLOAT32 = DType.INT32"]),
    ("f", {"symbol": "k", "source": "missing.c"}, ["missing.c cannot be read (No such "
     "file or directory). Hint: source= is the path of a C file, or its text with line "
     "ends"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "what"), MISTAKES)
def test_functions_that_make_no_sense(
    name: str, given: dict[str, Any], what: list[str]
) -> None:
    found = said(lambda: pybuild.function(name, **given))
    assert found == [f"function '{name}': {line}" for line in what]


def test_libraries_that_make_no_sense() -> None:
    one = by_op("one", "+")
    strange: Any = [one, 3]
    assert said(lambda: pybuild.functions(one, strange)) == [
        "functions: two are named 'one'",
        "functions: 3 is not a function. "
        "Hint: make it with pybuild.function(name, ...)",
    ]


@pytest.mark.parametrize(
    ("loop", "arguments", "what"),
    [
        (LOOP, [2**31],
         "argument 2147483648 of function 'myadd' is not a 32-bit integer"),
        (LOOP, [1.5], "argument 1.5 of function 'myadd' is not a 32-bit integer"),
        (elementwise("three", "+", 3), [4],
         "the loop of 'myadd' reads pointer 3, it has 3"),
        (DYNAMIC, [0],
         "the loop of 'myadd' reads pointer a computed number, it has 3"),
    ],
)  # fmt: skip
def test_loops_that_do_not_fit(loop: Func, arguments: Any, what: str) -> None:
    function = pybuild.function("myadd", loop=loop, arguments=arguments)
    assert said(lambda: build(json.dumps(simple()), functions=function)) == [
        f"graph.json: node 'add' (call): {what}"
    ]


def test_a_reference_must_fit() -> None:
    function = pybuild.function(
        "myadd", loop=LOOP, arguments=size, reference=lambda a, b: a.sum()
    )
    library = build(json.dumps(simple()), functions=function)
    assert said(library.files) == [
        "graph.json: node 'add' (call): the reference of 'myadd' gives float32[], not "
        "float32[4]"
    ]
