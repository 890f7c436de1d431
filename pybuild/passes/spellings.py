"""Several nodes that spell one operator become that operator: GELU from its erf or
tanh, a sigmoid from its exp, Relu6 from a minimum and a maximum, a mean from a sum.

Exporters write an operator out where their version of a format has no word for it. A
spelling is a formula in `_SPELLINGS`; its numbers must be those of the graph to the
last bits of their type. Knows no file format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import permutations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Attr, Graph, Node, Quant, Tensor
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit
from pybuild.records import dataclass

# X: the tensor that an operator reads; a str: any number, by that name; a float: that
# number; a tuple: a function and its operands, sums and products of any length
Formula = str | float | tuple["Formula", ...]
X, A = "x", "a"
Numbers = Mapping[str, float]
# operator and attributes, by the numbers that were found; None: another function
Made = Callable[[Numbers], tuple[str, dict[str, Attr]] | None]
_CLOSE = 4 * float(np.finfo(np.float32).eps)
# of a sum or product: tensors, and tensors and numbers that are looked at
_MOST_TERMS, _MOST_NODES = 6, 24
_MOST_POWER = 4  # x * x * x takes less than a power
_WORDS = {"multiply": "mul", "subtract": "sub"}
_STARTS = {"mul": 1.0, "add": 0.0}


def _map(fn: str) -> Made:
    return lambda numbers: ("map", {"fn": fn})


def _clip(low: bool, numbers: Numbers) -> tuple[str, dict[str, Attr]]:
    end = numbers[A]
    return "clip", {"clamp": (end, None) if low else (None, end)}


def _leaky(numbers: Numbers) -> tuple[str, dict[str, Attr]]:
    return "leaky_relu", {"alpha": numbers[A]}


def _greater(numbers: Numbers) -> tuple[str, dict[str, Attr]] | None:
    """max(x, a * x)"""
    if numbers[A] == -1:
        return "map", {"fn": "abs"}
    return _leaky(numbers) if 0 <= numbers[A] <= 1 else None


_HALF, _ROOT = math.sqrt(0.5), math.sqrt(2 / math.pi)
_CUBE: Formula = ("mul", X, X, X, 0.044715)
_SLOPE: Formula = ("mul", X, A)
_SPELLINGS: tuple[tuple[tuple[Formula, ...], Made], ...] = (
    (("mul", X, ("add", ("erf", ("mul", X, _HALF)), 1.0), 0.5), _map("gelu")),
    (
        ("mul", X, ("add", ("tanh", ("mul", ("add", X, _CUBE), _ROOT)), 1.0), 0.5),
        _map("gelu_tanh"),
    ),
    (
        (
            "mul", X, 0.5,
            ("add", 1.0, (
                "tanh", ("mul", X, ("add", ("mul", X, X, 0.044715), 1.0), _ROOT)
            )),
        ),
        _map("gelu_tanh"),
    ),
    (("mul", X, ("tanh", ("softplus", X))), _map("mish")),
    (
        ("divide", 1.0, ("add", ("exp", ("mul", X, -1.0)), 1.0)),
        lambda numbers: ("logistic", {}),
    ),
    (("maximum", X, A), lambda numbers: _clip(True, numbers)),
    (("minimum", X, A), lambda numbers: _clip(False, numbers)),
    (("maximum", X, _SLOPE), _greater),
    (("where", ("less", 0.0, X), X, _SLOPE), _leaky),
    (("where", ("less", X, 0.0), _SLOPE, X), _leaky),
)  # fmt: skip


def name_spellings(graph: Graph) -> Graph:
    """Operators instead of the nodes that spell them, of float32 tensors."""
    edit, terms = Edit(graph), Terms(graph, graph.producers())
    for node in graph.nodes:
        y = graph.tensor(node.output)
        made = None
        if y.dtype is DType.FLOAT32 and len(node.outputs) == 1:
            made = _spelled(terms, node) or _mean(edit, terms, node)
        if made is None:
            _keep_power(edit, terms, node)
        else:
            edit.keep(made)
    return remove_dead(edit.done())


def _spelled(terms: Terms, node: Node) -> Node | None:
    for formula, made in _SPELLINGS:
        if formula[0] not in (word_of(node), "mul" if terms.divisor(node) else ""):
            continue
        found = terms.match(formula, node.output, _Match())
        as_operator = made(found.numbers) if found is not None else None
        if found is None or as_operator is None:
            continue
        (op, attrs), x = as_operator, found.tensor
        if terms.graph.tensor(x).shape == terms.graph.tensor(node.output).shape:
            return replace(node, op=op, inputs=(x,), attrs=attrs)
    return None


def word_of(node: Node | None, clamped: bool = False) -> str:
    """The function of a node: a map's and a layer's have one word. "": no node, or one
    with limits.

    clamped  it may have limits
    """
    limits = (None, None) if node is None else node.attrs.get("clamp", (None, None))
    if node is None or (limits != (None, None) and not clamped):
        return ""
    name = str(node.attrs["fn"]) if node.op == "map" else node.op
    return _WORDS.get(name, name)


@dataclass(frozen=True)
class _Match:
    """What stands for the names of a formula; tensor "": nothing yet."""

    tensor: str = ""
    numbers: Numbers = field(default_factory=dict)


@dataclass(frozen=True)
class Terms:
    """The tensors of a graph as formulas."""

    graph: Graph
    producers: Mapping[str, Node]

    def number(self, name: str) -> float | None:
        """A constant of one element."""
        value: Array | None = self.graph.constants.get(name)
        if value is None or value.size != 1 or name in self.graph.parameters:
            return None
        return float(value.reshape(-1)[0])

    def power(self, node: Node) -> int:
        """n of x ** n, of a small whole n; else 0"""
        if node.attrs.get("fn") != "power":
            return 0
        exponent = self.number(node.inputs[1]) or 0.0
        return int(exponent) if exponent in range(2, _MOST_POWER + 1) else 0

    def divisor(self, node: Node | None) -> float:
        """The number that a tensor is divided by; 0: it is not"""
        if node is None or word_of(node) != "divide":
            return 0.0
        return self.number(node.inputs[1]) or 0.0

    def match(self, formula: Formula, name: str, found: _Match) -> _Match | None:
        """What `found` is, and what the formula adds; None if the tensor is not it."""
        if isinstance(formula, tuple):
            return self._function(formula, name, found)
        if formula == X:
            same = found.tensor in ("", name) and self.number(name) is None
            return replace(found, tensor=name) if same else None
        number = self.number(name)
        return None if number is None else self._number(formula, number, found)

    def _number(
        self, formula: str | float, value: float, found: _Match
    ) -> _Match | None:
        if isinstance(formula, str):
            made = replace(found, numbers={**found.numbers, formula: value})
            return made if math.isfinite(value) else None
        same = math.isclose(value, float(formula), rel_tol=_CLOSE)
        return found if same else None

    def _function(
        self, formula: tuple[Formula, ...], name: str, found: _Match
    ) -> _Match | None:
        word, *operands = formula
        node = self.producers.get(name)
        if word in _STARTS:
            return self._chain(str(word), operands, name, found)
        if node is None or word_of(node) != word or len(node.inputs) != len(operands):
            return None
        orders = [tuple(node.inputs)]
        if word in ("maximum", "minimum"):
            orders.append(orders[0][::-1])
        return self._first(operands, orders, found)

    def _first(
        self, formulas: Sequence[Formula], orders: list[tuple[str, ...]], found: _Match
    ) -> _Match | None:
        """The first order of tensors that fits."""
        for names in orders:
            now: _Match | None = found
            for formula, name in zip(formulas, names, strict=True):
                now = self.match(formula, name, now) if now is not None else None
            if now is not None:
                return now
        return None

    def _chain(
        self, word: str, operands: Sequence[Formula], name: str, found: _Match
    ) -> _Match | None:
        """A sum or a product, in any order; numbers in it are one number."""
        names, value = self.flat(word, name)
        tensors = [f for f in operands if isinstance(f, tuple) or f == X]
        (number,) = [f for f in operands if not isinstance(f, tuple) and f != X] or [
            _STARTS[word]
        ]
        now = self._number(number, value, found)
        if now is None or len(names) != len(tensors):
            return None
        return self._first(tensors, list(permutations(names)), now)

    def flat(self, word: str, name: str) -> tuple[tuple[str, ...], float]:
        """The tensors of a sum or product, and the number in it."""
        names: list[str] = []
        waiting, value = [name], _STARTS[word]
        for _ in range(_MOST_NODES):
            if not waiting or len(names) + len(waiting) > _MOST_TERMS:
                break
            one = waiting.pop()
            number, node = self.number(one), self.producers.get(one)
            if number is not None:
                value = value * number if word == "mul" else value + number
            elif node is not None and word_of(node) == word:
                waiting += node.inputs
            elif node is not None and word == "mul" and word_of(node) == "negate":
                waiting, value = [*waiting, *node.inputs], -value
            elif word == "mul" and self.divisor(node):
                assert node is not None
                waiting, value = [*waiting, node.inputs[0]], value / self.divisor(node)
            elif node is not None and word == "mul" and self.power(node):
                waiting += [node.inputs[0]] * self.power(node)
            else:
                names.append(one)
        return (*names, *waiting), value


def _mean(edit: Edit, terms: Terms, node: Node) -> Node | None:
    """A sum along an axis, divided by how many elements it has; a mean of a mean."""
    graph = terms.graph
    if word_of(node) == "mul" or terms.divisor(node):
        names, value = terms.flat("mul", node.output)
        total = terms.producers.get(names[0]) if len(names) == 1 else None
        if total is not None and total.op == "reshape":
            total = terms.producers.get(total.inputs[0])
        if total is None or total.op != "reduce" or total.attrs["fn"] != "sum":
            return None
        axis, made = total.attrs["axis"], edit.fresh(f"{node.output}.mean")
        x = graph.tensor(total.inputs[0])
        if not math.isclose(value * x.shape[int(axis)], 1, rel_tol=_CLOSE):
            return None
        attrs: dict[str, Attr] = {"axes": (axis,), "keepdims": True}
        mean = Node("mean", node.name, total.inputs, (made,), attrs)
        return Node("reshape", node.name, (edit.emit(mean),), node.outputs)
    first = terms.producers.get(node.inputs[0]) if node.op == "mean" else None
    if first is None or first.op != "mean" or not first.attrs["keepdims"]:
        return None
    if not node.attrs["keepdims"]:
        return None  # axes of the first one would be lost as well
    axes = tuple(sorted({*first.attrs["axes"], *node.attrs["axes"]}))
    return replace(node.with_attrs(axes=axes), inputs=first.inputs)


def _keep_power(edit: Edit, terms: Terms, node: Node) -> None:
    """x ** n as products, of a small whole n."""
    y, count = edit.tensors[node.output], terms.power(node)
    x = last = node.inputs[0] if node.inputs else ""
    if not count or not y.dtype.is_float or edit.tensors[x].shape != y.shape:
        edit.keep(node)
        return
    layer = y.dtype is DType.FLOAT32
    op, attrs = ("mul", {}) if layer else ("map", {"fn": "multiply"})
    for turn in range(2, count):
        made = edit.fresh(f"{node.output}.{turn}")
        product = Node(op, node.name, (last, x), (made,), attrs)
        last = edit.emit(product, dtype=y.dtype)
    edit.keep(Node(op, node.name, (last, x), node.outputs, attrs))


def pool_maxima(graph: Graph) -> Graph:
    """The maximum along an axis before channels, of integers, as a pool: its kernels
    take four channels and more at a time."""
    edit = Edit(graph)
    for node in graph.nodes:
        x = graph.tensor(node.inputs[0]) if node.op == "reduce" else None
        if x is None or not _is_pool(graph, node, x):
            edit.keep(node)
            continue
        axis = int(node.attrs["axis"])
        rows, size = math.prod(x.shape[:axis]), x.shape[axis]
        image = (rows, size, 1, math.prod(x.shape[axis + 1 :]))
        quant = x.quant or Quant((1.0,), (0,))
        read = Node("reshape", node.name, node.inputs, (edit.fresh(f"{x.name}.image"),))
        edit.emit(read, shape=image, dtype=x.dtype, quant=quant)
        made = (edit.fresh(f"{node.output}.pool"),)
        window: dict[str, Attr] = {
            "kernel": (size, 1), "strides": (1, 1), "pads": (0, 0, 0, 0)
        }  # fmt: skip
        pool = Node("max_pool2d", node.name, read.outputs, made, window)
        edit.emit(pool, dtype=x.dtype, quant=quant)
        edit.keep(Node("reshape", node.name, made, node.outputs))
    return edit.done()


def _is_pool(graph: Graph, node: Node, x: Tensor) -> bool:
    """A maximum of int8 or int16, over an axis with four elements or more behind it."""
    behind = math.prod(x.shape[int(node.attrs["axis"]) + 1 :])
    small = x.dtype in (DType.INT8, DType.INT16)
    same = x.quant == graph.tensor(node.output).quant
    return node.attrs["fn"] == "max" and small and same and behind >= 4
