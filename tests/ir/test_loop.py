"""Loop IR: folding, verification, and the two printers on one small kernel."""

from __future__ import annotations

import pytest

from pybuild.dtype import DType
from pybuild.emit.kernels import c, llvm
from pybuild.emit.kernels.llvm_declared import declarations
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT32,
    Const,
    Func,
    Let,
    PointerType,
    Store,
    Var,
    binary,
    cast,
    const,
    i32,
    load,
    select,
)
from pybuild.ir.loop_verify import verify
from pybuild.kernels.base.builder import Builder

X = Var("x", INT32)


def test_constants_fold_as_c_computes_them() -> None:
    assert const(-7) // 2 == const(-3)
    assert const(-7) % 2 == const(-1)
    assert const(-7) >> 1 == const(-4)
    assert (X + 1) + 2 == X + 3
    assert (X - 3) + 3 == X
    assert const(0) == X * 0
    assert select(const(3) < 4, X, const(0)) == X


def test_operands_of_two_types_are_refused() -> None:
    with pytest.raises(TypeError):
        binary("+", X, Var("f", FLOAT32))


def doubled() -> Func:
    k = Builder("doubled")
    n = k.arg("n", 5)
    y = k.row("y", 0, INT8, writable=True)
    x = k.row("x", 1, INT8)
    with k.loop("i", n) as i:
        twice = k.let("twice", i32(load(x, i)) * 2)
        with k.when(twice < 100):
            k.store(y, i, cast(twice, INT8))
        with k.otherwise():
            k.store(y, i, const(100, INT8))
    return k.finish()


def test_c_text() -> None:
    assert c.function(doubled(), ["/* doubles */"]).splitlines() == [
        "/* doubles */",
        "static void doubled(void *const *p, const int32_t *a)",
        "{",
        "    const int32_t n = a[0];",
        "    int8_t *restrict y = p[0];",
        "    const int8_t *restrict x = p[1];",
        "    for (int32_t i = 0; i < n; i++) {",
        "        int32_t twice = (int32_t)x[i] * 2;",
        "        if (twice < 100) {",
        "            y[i] = (int8_t)twice;",
        "        } else {",
        "            y[i] = (int8_t)100;",
        "        }",
        "    }",
        "}",
    ]


def test_llvm_text_parses() -> None:
    import llvmlite.binding as binding

    binding.initialize_native_target()
    text = llvm.function(doubled()) + declarations()
    binding.parse_assembly(text).verify()
    assert "define void @doubled(ptr noalias readonly %p" in text


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ((Let(Var("y", INT32), X),), "'x' is not declared"),
        ((Let(X, const(1)), Let(X, const(2))), "'x' hides another"),
        ((Let(X, Const(1, DType.INT64)),), "'x': "),
        (
            (Store(Var("p", PointerType(INT8)), const(0), const(1, INT8)),),
            "'p' is not declared",
        ),
    ],
)
def test_faults_are_found(body: tuple[Let, ...], fault: str) -> None:
    with pytest.raises(ValueError, match="kernel bad: ") as caught:
        verify(Func("bad", (), (), body))
    assert fault in str(caught.value)


def test_a_read_only_pointer_is_not_written() -> None:
    k = Builder("bad")
    x = k.row("x", 0, INT8)
    k.store(x, 0, const(1, INT8))
    with pytest.raises(ValueError, match="read-only"):
        k.finish()
