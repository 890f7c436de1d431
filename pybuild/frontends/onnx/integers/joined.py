"""DynamicQuantizeMatMul and MatMulIntegerToFloat of com.microsoft, written as the nodes
that ONNX Runtime's optimiser fuses into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.integers import dynamic
from pybuild.frontends.onnx.integers.general import matmul_integer
from pybuild.frontends.onnx.operators import eltwise
from pybuild.frontends.onnx.operators.elements import (
    Handler,
    cast,
    either,
    either_cast,
    plain,
)
from pybuild.frontends.onnx.reader.op import Op

_ADD = either(eltwise.same, plain("add"))
_MUL = either(eltwise.same, plain("multiply"))
_CAST = either_cast(eltwise.cast, cast)


class _Nodes:
    """Writes several nodes in place of one."""

    def __init__(self, draft: Draft, op: Op) -> None:
        self.draft, self.op = draft, replace(op, domain="", opset=13)

    def add(
        self, kind: str, handler: Handler, inputs: Sequence[str], count: int = 1
    ) -> list[str]:
        """Write an ONNX node; return the names of its outputs."""
        text = f"{self.op.output}.{kind}"
        names = [self.draft.fresh(f"{text}.{number}") for number in range(count)]
        attrs = {"to": 1} if kind == "Cast" else {}
        handler(
            self.draft,
            replace(
                self.op, kind=kind, name=names[0], inputs=tuple(inputs),
                outputs=tuple(names), attrs=attrs,
            ),
        )  # fmt: skip
        return names

    def product(self, x: Sequence[str], weights: Sequence[str], bias: str) -> None:
        """Write the product of x and the weights; both are integers with scale and zero
        point."""
        (q, scale, zero), (w, factor, point) = x, weights
        sums = self.add("MatMulInteger", matmul_integer, (q, w, zero, point))[0]
        real = self.add("Cast", _CAST, (sums,))[0]
        both = self.add("Mul", _MUL, (scale, factor))[0]
        kind, handler, inputs = "Mul", _MUL, (real, both)
        if bias:
            kind, handler = "Add", _ADD
            inputs = (self.add("Mul", _MUL, (real, both))[0], bias)
        handler(self.draft, replace(self.op, kind=kind, inputs=inputs, attrs={}))


def matmul_to_float(draft: Draft, op: Op) -> None:
    """(A - its zero point) x (B - its zero point), times both scales, and a bias."""
    a, b, a_scale, b_scale, a_zero, b_zero, bias = (op.input(i) for i in range(7))
    _Nodes(draft, op).product((a, a_scale, a_zero), (b, b_scale, b_zero), bias)


def dynamic_matmul(draft: Draft, op: Op) -> None:
    """Do the same as matmul_to_float for a float32 A, which is quantised by its own
    range."""
    nodes = _Nodes(draft, op)
    a, b, scale, zero, bias = (op.input(i) for i in range(5))
    x = nodes.add("DynamicQuantizeLinear", dynamic.quantize, (a,), 3)
    nodes.product(x, (b, scale, zero), bias)
