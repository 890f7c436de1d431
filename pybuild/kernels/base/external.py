"""A call of a user's function as a kernel: its loop IR, or a call of its C symbol.

Every tensor is handed over whole, in one call. A function numbers its pointers as
outputs, then inputs; crt hands constants over last, so the numbers are changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, fields, is_dataclass, replace
from typing import Any

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Const, Func, Intrin, Row, const
from pybuild.kernels.base.candidate import Candidate, Packed, whole
from pybuild.ops.base.function import Function
from pybuild.ops.base.operator import invalid
from pybuild.records import dataclass
from pybuild.targets.target import Target

# instructions an element, about: nothing is known of the code
_COST = 10


@dataclass(frozen=True)
class External(Func):
    """A kernel that hands its pointers and integers on to a C function.

    pointers      which of crt's pointers the function's first is, its second, ...
    source, file  the C text that defines it and the file's name, or ""
    """

    symbol: str = field(default="", kw_only=True)
    pointers: tuple[int, ...] = field(default=(), kw_only=True)
    source: str = field(default="", kw_only=True)
    file: str = field(default="", kw_only=True)


def call(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """Return the single candidate for a call.

    Errors  BuildError where the loop does not fit what it is called with
    """
    function: Function = node.attrs["function"]
    integers = function.integers(node, graph)
    known = [n for n in node.inputs if n in graph.constants]
    computed = [n for n in node.inputs if n not in graph.constants]
    numbers = _numbers(node, (computed, known))
    func = _symbol(function, numbers) or _loop(node, graph, integers, numbers)
    outputs = tuple(whole(graph.tensor(n)) for n in node.outputs)
    in_place = tuple(i for i, n in enumerate(node.inputs) if n in computed)
    sizes = sum(graph.tensor(n).size for n in (*node.outputs, *computed))
    return [
        Candidate(
            func=func,
            args=integers,
            outputs=outputs,
            inputs=tuple(whole(graph.tensor(n)) for n in computed),
            constants=tuple(
                Packed("values", graph.constants[n], order="row-major") for n in known
            ),
            in_place=in_place if func.in_place and len(outputs) == 1 else (),
            cost=_COST * sizes,
        )
    ]


def _symbol(function: Function, numbers: Sequence[int]) -> External | None:
    if not function.symbol:
        return None
    return External(
        f"call_{function.symbol}",
        (),
        (),
        (),
        symbol=function.symbol,
        pointers=tuple(numbers),
        source=function.source,
        file=function.file,
    )


def _loop(
    node: Node, graph: Graph, integers: Sequence[int], numbers: Sequence[int]
) -> Func:
    """Return the function's loop, with its pointers renumbered as crt passes them."""
    function: Function = node.attrs["function"]
    assert function.loop is not None, function
    func = function.loop
    if len(integers) != len(func.args):
        what = f"the loop of '{function.name}' has {len(func.args)} arguments, "
        hint = "arguments= gives them; without it they are the ranks and dimensions"
        raise invalid(node, graph, f"{what}it gets {len(integers)}", hint)
    for index in _rows(func.body):
        if not isinstance(index, Const) or not 0 <= int(index.value) < len(numbers):
            text = int(index.value) if isinstance(index, Const) else "a computed number"
            what = f"the loop of '{function.name}' reads pointer {text}, it has "
            raise invalid(node, graph, f"{what}{len(numbers)}")
    return replace(func, body=_renumbered(func.body, numbers))


def _numbers(node: Node, inputs: tuple[Sequence[str], Sequence[str]]) -> list[int]:
    """Map the function's pointers to crt's: outputs, computed inputs, constants."""
    computed, known = inputs
    order = iter(range(len(node.outputs), len(node.outputs) + len(computed)))
    last = iter(range(len(node.outputs) + len(computed), 1 << 30))
    found = [next(last) if name in known else next(order) for name in node.inputs]
    return [*range(len(node.outputs)), *found]


def _rows(tree: Any) -> Iterator[Any]:
    """Yield the numbers of all pointers that some code takes."""
    if isinstance(tree, Row):
        yield tree.index
    for part in _parts(tree):
        yield from _rows(part)


def _renumbered(tree: Any, numbers: Sequence[int]) -> Any:
    if isinstance(tree, Row):
        assert isinstance(tree.index, Const)
        return replace(tree, index=const(numbers[int(tree.index.value)]))
    if isinstance(tree, tuple):
        return tuple(_renumbered(part, numbers) for part in tree)
    if not _is_code(tree):
        return tree
    parts = {f.name: _renumbered(getattr(tree, f.name), numbers) for f in fields(tree)}
    return replace(tree, **parts)


def _parts(tree: Any) -> list[Any]:
    if isinstance(tree, tuple):
        return list(tree)
    return [getattr(tree, f.name) for f in fields(tree)] if _is_code(tree) else []


def _is_code(tree: Any) -> bool:
    return is_dataclass(tree) and not isinstance(tree, Intrin | type)
