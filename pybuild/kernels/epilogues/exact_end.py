"""The epilogue by the layer's own rounding rule, inside a kernel being written. It is a
separate function, so that cheap code keeps all registers.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.dtype import DType
from pybuild.ir.loop import (
    FLOAT32,
    Bitcast,
    Expr,
    Operand,
    Var,
    cast,
    const,
    load,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.epilogues.bare import Bare, BareEnd
from pybuild.kernels.epilogues.exact import Exact
from pybuild.kernels.epilogues.int8 import scaled
from pybuild.kernels.epilogues.requantise import RULES, Scaler

# a sum, and where its value goes: a pointer, and an index
Sum = tuple[Expr, Expr, Operand]


def end_of(k: Builder, end: Exact) -> RuleEnd:
    """Return the bound values of an Exact; a Bare has none."""
    return BareEnd(k) if isinstance(end, Bare) else ExactEnd(k, end)


class ExactEnd:
    """The bound values of an Exact."""

    def __init__(self, k: Builder, end: Exact) -> None:
        self.k, self.end = k, end
        self.values: dict[str, Expr] = {
            "lowest": k.arg("lowest", end.low),
            "most": k.arg("most", end.high),
            "y_zero": k.arg("y_zero", end.zero_point),
        }

    def inside(self, params: Mapping[str, Var]) -> ExactEnd:
        """Return the same inside a part that was given `values`."""
        inner = ExactEnd.__new__(ExactEnd)
        inner.k, inner.end = self.k, self.end
        inner.values = {n: params.get(n, v) for n, v in self.values.items()}
        return inner

    def store(self, y: Expr, at: Operand, acc: Expr, row: Expr) -> None:
        """Finish and store a sum; `row`: its channel's."""
        k, name = self.k, f"end_{self.end.key}"
        doc = told("y[0], int8, of one sum", "one row of the table", self.end.words)
        given = {"y": offset(y, at), "acc": acc, "row": row, **self.values}
        with k.part(name, doc, **given) as params:
            known = {p.name: p for p in params}
            total = k.let("total", known["acc"] + load(known["row"], 0))
            low, high, zero = (known[n] for n in self.values)
            k.store(known["y"], 0, self._value(total, known["row"], low, high, zero))

    def _value(self, acc: Expr, row: Expr, low: Expr, high: Expr, zero: Expr) -> Expr:
        if self.end.rounding == "even":
            factor = Bitcast(load(row, 1), FLOAT32)
            least, most = (cast(end - zero, FLOAT32) for end in (low, high))
            return scaled(acc, factor, least, most, zero)
        left = load(row, 3) if self.end.given == 3 else None
        rule = RULES[self.end.rounding]
        scaler = Scaler(rule, load(row, 1), load(row, 2), left, low, high, zero,
                        DType.INT8)  # fmt: skip
        return scaler.apply(acc, const(0))


RuleEnd = ExactEnd | BareEnd
