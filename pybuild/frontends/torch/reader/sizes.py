"""Sizes that a program leaves open (s77), and sizes computed from them (2*s77 + 1)."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pybuild.errors import BuildError, Problem

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Div: operator.truediv, ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}  # fmt: skip
# as sympy writes its expressions, and torch's own functions of them
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": lambda *each: sum(each), "Mul": lambda *each: math.prod(each),
    "Integer": int, "Pow": operator.pow, "Rational": operator.truediv, "Float": float,
    "FloorDiv": operator.floordiv, "CeilDiv": lambda a, b: -(-a // b),
    "Mod": operator.mod, "PythonMod": operator.mod, "Max": max, "Min": min,
    "floor": math.floor, "ceiling": math.ceil, "TruncToInt": math.trunc,
    "FloorToInt": math.floor, "CeilToInt": math.ceil, "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv, "ToFloat": float, "Abs": abs,
}  # fmt: skip


# a size that is a symbol alone
_SYMBOL = re.compile(r"^(?:Symbol\(')?(s\d+)(?:'.*\))?$")


class Sizes:
    """The user's numbers for a program's symbols; evaluates expressions of them."""

    def __init__(
        self,
        source: str,
        document: Mapping[str, Any],
        graph: Mapping[str, Any],
        given: Mapping[str, int],
    ) -> None:
        self.source = source
        self.ranges = document.get("range_constraints", {})
        self.metas = graph["tensor_values"]
        kinds = ("sym_int_values", "sym_float_values", "sym_bool_values")
        self.values = {k: v for kind in kinds for k, v in graph.get(kind, {}).items()}
        self.open: dict[str, None] = {}
        self.used: set[str] = set()
        self.given, self._axes = dict(given), self._named_axes(graph)
        for axis, symbol in self._axes.items():
            if axis in self.given:
                self.given[symbol] = self.given.pop(axis)

    def _named_axes(self, graph: Mapping[str, Any]) -> dict[str, str]:
        """Map INPUT.AXIS to its symbol: a file holds no names of Dims, and each export
        may number its symbols differently."""
        found = {}
        for one in graph["inputs"]:
            name = next(iter(one.values()))
            name = name["name"] if isinstance(name, Mapping) else name
            sizes = self.metas.get(name, {}).get("sizes", ())
            for axis, size in enumerate(sizes):
                text = size.get("as_expr", {}).get("expr_str", "")
                symbol = _SYMBOL.search(text)
                if symbol:
                    found[f"{name}.{axis}"] = symbol[1]
        return found

    def shape(self, sizes: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        return tuple(int(self._size(size)) for size in sizes)

    def number(self, value: Mapping[str, Any]) -> Any:
        """Return a number, or the value of one that the program computes."""
        kind, what = next(iter(value.items()))
        return self._size(self.values[what]) if kind == "as_name" else what

    def _size(self, size: Mapping[str, Any]) -> Any:
        kind, value = next(iter(size.items()))
        if kind != "as_expr":
            return value
        return self._of(ast.parse(value["expr_str"], mode="eval").body)

    def _of(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as value):
                return value
            case (
                ast.Name(id=name)
                | ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=name)])
            ):
                return self._symbol(str(name))
            case ast.BinOp(left=left, op=op, right=right):
                return _BINARY[type(op)](self._of(left), self._of(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._of(operand)
            case ast.Call(func=ast.Name(id=name), args=args):
                return _FUNCTIONS[name](*map(self._of, args))
            case ast.Call(func=ast.Attribute(attr=name), args=args):
                return _FUNCTIONS[name](*map(self._of, args))
        raise ValueError(ast.dump(node))

    def _symbol(self, name: str) -> int:
        if name not in self.given:
            self.open[name] = None
            return 2
        self.used.add(name)
        value, span = self.given[name], self.ranges.get(name, {})
        low, high = span.get("min_val") or 0, span.get("max_val")
        # torch takes no sizes of 0 and 1 as examples, and says 2 for it
        if value < (low if low > 2 else 1) or (high is not None and value > high):
            what = f"{name} is {value}, the program is for {low} to {high or 'any'}"
            raise BuildError("--input-dim", what, "export it with a wider range")
        return value

    def check(self, inputs: Sequence[str]) -> None:
        """Check that all symbols of inputs have a number.

        Errors  BuildError for symbols of inputs without a number
        """
        problems, unknown = [], set(self.given)
        told: set[str] = set()
        for name in inputs:
            for axis, size in enumerate(self.metas[name]["sizes"]):
                self.open.clear()
                self._size(size)
                unknown -= self.used
                for symbol in set(self.open) - told:
                    told.add(symbol)
                    what = f"axis {axis} of input '{name}' is open: '{symbol}'"
                    own = f"{name}.{axis}"
                    word = own if self._axes.get(own) == symbol else symbol
                    problems.append(Problem(self.source, what, f"--input-dim {word}=1"))
        known = ", ".join(f"{axis} ({symbol})" for axis, symbol in self._axes.items())
        hint = f"a .pt2 keeps no names of Dim; open are {known}" if known else ""
        for name in sorted(unknown):
            what = f"there is no dimension '{name}'"
            problems.append(Problem("--input-dim", what, hint))
        if problems:
            raise BuildError.of(problems)
