"""Each operator of tests/mutate on a snippet: what it draws from it."""

from __future__ import annotations

import ast

import pytest

from pybuild.ir.loop import Func, i32
from pybuild.kernels.base.builder import Builder
from tests.mutate import c_ops, handmade, loop_ops, python_ops
from tests.mutate.mutation import Mutation
from tests.mutate.watching import functions_with

PYTHON = {
    "swap_comparison": ("x = a < b", ["x = (a <= b)"]),
    "off_by_one": ("for i in range(n):\n    f(7)", [
        "for i in range(n - 1):\n    f(7)", "for i in range(n):\n    f(8)",
        "for i in range(n):\n    f(6)"]),
    "drop_term": ("x = a + b", ["x = a", "x = b"]),
    "drop_factor": ("x = a * b", ["x = a"]),
    "other_shift": ("x = a >> 5", ["x = (a >> 5 + 1)"]),
    "other_rounding": ("x = -(-a // b)", ["x = (a // b)", "x = -((-(--a // b)))"]),
    "exchange_operands": ("x = f(a - b, c)", ["x = f(c, a - b)", "x = f((b - a), c)"]),
    "swap_and_or": ("x = a and b", ["x = (a or b)"]),
    "drop_condition": ("x = not a", ["x = a"]),
    "swap_branches": ("x = a if c else b", ["x = (b if c else a)"]),
    "other_function": ("x = np.rint(min(a, b))", [
        "x = np.floor(min(a, b))", "x = np.rint(max(a, b))"]),
    "drop_keyword": ("x = f(a, b=c)", ["x = f(a)"]),
    "remove_check": ("if a:\n    raise E", ["if False:\n    raise E"]),
    "skip_entry": ("T = (f, g, h)", ["T = (g, h)", "T = (f, h)", "T = (f, g)"]),
    "drop_statement": ("x += 1", ["pass"]),
    "return_early": ("def f():\n    g()\n    h()", ["def f():\n    g()\n    return"]),
}  # fmt: skip
C = {
    "error_return": ("if (n > 3) { return CRT_ERR_SIZE; }",
                     ["if (0 && (n > 3)) { return CRT_ERR_SIZE; }"]),
    "swap_comparison": ("if (n > 3) { n = 3; }", ["if (n >= 3) { n = 3; }"]),
    "off_by_one": ("n = n + 4u;", ["n = n + 5u;", "n = n + 3u;"]),
    "other_shift": ("n = n >> 2;", ["n = n >> 3;"]),
    "drop_term": ("n = m - n;", ["n = m ;"]),
    "swap_and_or": ("if (n && m) { n = 3; }", ["if (n || m) { n = 3; }"]),
    "drop_statement": ("n += m;", [";"]),
}  # fmt: skip


@pytest.mark.parametrize("name", python_ops.OPERATORS)
def test_python(name: str) -> None:
    source, wanted = PYTHON[name]
    found = [m for m in python_ops.mutations("a.py", source) if m.operator == name]
    made = [m.applied(source.encode()).decode() for m in found]
    assert [text.strip() for text in made] == wanted
    assert all(ast.dump(ast.parse(t)) != ast.dump(ast.parse(source)) for t in made)


@pytest.mark.parametrize("name", c_ops.OPERATORS)
def test_c(name: str) -> None:
    """In bodies of functions only: the comment and the macro stay."""
    line, wanted = C[name]
    begin, end = (
        "#define N (1 + 2)\n/* 3 > 2 */ static int f(int n, int m)\n{ ",
        "\n}\n",
    )
    source = begin + line + end
    found = [m for m in c_ops.mutations("a.c", source) if m.operator == name]
    assert [m.applied(source.encode()).decode() for m in found] == [
        begin + text + end for text in wanted
    ]
    assert {m.function for m in found} == {"f"}


def test_what_is_equal_is_never_drawn() -> None:
    source = "x = f(a, a) + (a - a)\nfor y in ():\n    continue"
    operators = {m.operator for m in python_ops.mutations("a.py", source)}
    assert "exchange_operands" not in operators and "drop_term" in operators


def test_types_messages_and_texts_are_left_alone() -> None:
    source = """@cache(maxsize=8)
def f(a: Tuple[3]) -> Tuple[4]:
    if TYPE_CHECKING:
        x = 1
    assert isinstance(a, b)
    y = f"{a + 1}"
    raise ValueError(a + 1)
"""
    assert python_ops.mutations("a.py", source) == []


def test_equal_places_of_a_function_are_numbered() -> None:
    found = python_ops.mutations("a.py", "def f():\n    a += 1\n    a += 1\n")
    assert len({m.key for m in found}) == len(found)
    assert {m.nth for m in found} == {0, 1}


def _kernel() -> Func:
    k = Builder("kernel")
    out = k.row("y", 0, i32(0).type, writable=True)  # type: ignore[arg-type]
    n = k.arg("n", 5)
    with k.loop("i", n) as i, k.when(i < 3):
        k.store(out, i, ((i + 64) >> 3) - n)
    return k.finish()


@pytest.mark.parametrize("name", loop_ops.OPERATORS)
def test_loop_ir(name: str) -> None:
    """Each has a node in this kernel, but for limits; the result is another kernel."""
    kernel = _kernel()
    found = loop_ops.mutants(kernel, name)
    assert bool(found) == (name != "limit")
    assert all(other != kernel for other in found)
    if found:
        assert loop_ops.mutated(kernel, name, "0 of 8") == found[0]
        assert loop_ops.mutated(kernel, name, "7 of 8") == found[-1]


@pytest.mark.parametrize(
    ("find", "put", "wanted"),
    [
        ("min(_1, size - _2)", "min(_1, size)", "x = min(i, size)"),
        ("_1 - step", "step - _1", None),
        ("x = _1", "x = (_1, _1)", "x = (min(i, size - step), min(i, size - step))"),
    ],
)
def test_a_pattern_finds_a_node(find: str, put: str, wanted: str | None) -> None:
    """By what it is: line breaks do not matter, _1 is anything."""
    source = "def f():\n    x = min(\n        i, size - step)\n"
    entry = {"find": find, "put": put, "function": "f"}
    found = list(handmade._in_python(entry, source))
    ((begin, end, text),) = found
    made = Mutation("a.py", "f", "by hand", find, put, 0, begin, end, text)
    after = ast.parse(made.applied(source.encode()))
    expected = wanted or "x = min(i, step - size)"
    assert ast.unparse(after.body[0].body[0]) == expected  # type: ignore[attr-defined]


def test_functions_that_lines_are_in() -> None:
    body = "        return 1\n"
    source = f"a = 1\nclass C:\n    def f(self):\n{body}\n    def g(self):\n{body}"
    assert functions_with(source, [1, 4]) == ["", "C", "C.f"]
    assert functions_with(source, []) == []
