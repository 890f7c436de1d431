"""A user's function: what a node that carries only a name may call, and its meaning.

An operator of ours, a C symbol, or loop IR. Knows no file, kernel or plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ir.graph import Attr, Graph, Node, Tensor
from pybuild.ir.loop import Func
from pybuild.ops.base.operator import Types, Values, invalid
from pybuild.records import dataclass

# operator of a node that calls a symbol or loop IR; its attributes are `function`,
# and `flat` where the arguments are to be seen with one dimension
CALL = "call"

Tensors = Sequence[Tensor]
Arguments = Sequence[int] | Callable[[Tensors, Tensors], Sequence[int]]
Meaning = Callable[..., Array | tuple[Array, ...]]


@dataclass(frozen=True, repr=False)
class Function:
    """One function of a library; exactly one of op, symbol, loop is given.

    op, attrs     an operator of the Graph IR
    symbol        a C function of type crt_kernel (crt/abi.h)
    source, file  the C text that defines it and the file's name; "" if the firmware
                  links it from elsewhere
    loop          loop IR, which both printers print
    arguments     the integers `a` of a symbol or loop, as a list or as a function of
                  the outputs and inputs; None: rank, then dimensions, of each output
                  and each input in the order of `p`
    reference     numpy meaning: the inputs' arrays to the output's, or a tuple
    """

    name: str
    op: str = ""
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    symbol: str = ""
    source: str = ""
    file: str = ""
    loop: Func | None = None
    arguments: Arguments | None = None
    reference: Meaning | None = None

    def __repr__(self) -> str:
        return f"function {self.name}"

    def integers(self, node: Node, graph: Graph) -> tuple[int, ...]:
        """The integers `a` for one node that calls this function.

        Errors  BuildError for what are not 32-bit integers
        """
        if self.loop is not None and not self.loop.args and self.arguments is None:
            return ()
        outputs, inputs = tensors_of(node, graph)
        match self.arguments:
            case None:
                shapes = [t.shape for t in (*outputs, *inputs)]
                made = [n for shape in shapes for n in (len(shape), *shape)]
            case Sequence():
                made = list(self.arguments)
            case _:
                made = list(self.arguments(outputs, inputs))
        bad = [n for n in made if not _is_int32(n)]
        if bad:
            what = f"argument {bad[0]!r} of function '{self.name}' is not a 32-bit "
            what += "integer"
            raise invalid(node, graph, what)
        return tuple(map(int, made))


def _is_int32(value: object) -> bool:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        return False
    return -(2**31) <= int(value) < 2**31


def tensors_of(node: Node, graph: Graph) -> tuple[Tensors, Tensors]:
    """Outputs and inputs as the function sees them: flat if the node says so."""

    def seen(name: str) -> Tensor:
        tensor = graph.tensor(name)
        return replace(tensor, shape=(tensor.size,)) if node.attrs["flat"] else tensor

    return tuple(map(seen, node.outputs)), tuple(map(seen, node.inputs))


def infer(node: Node, graph: Graph) -> Types:
    """The types in the graph: only the function knows better."""
    outputs = [graph.tensor(name) for name in node.outputs]
    return tuple((tensor.shape, tensor.dtype) for tensor in outputs)


def has_reference(node: Node) -> bool:
    """True if numpy can compute the node."""
    return node.op != CALL or node.attrs["function"].reference is not None


def reference(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """The result by the user's definition in numpy.

    Errors  BuildError without a meaning, or one of other shapes or types
    """
    function: Function = node.attrs["function"]
    if function.reference is None:
        what = f"the function '{function.name}' has no numpy meaning"
        raise invalid(node, graph, what, "give it reference=")
    if node.attrs["flat"]:
        values = [None if v is None else v.reshape(-1) for v in values]
    made = function.reference(*values)
    found = [np.asarray(v) for v in (made if isinstance(made, tuple) else (made,))]
    outputs, _ = tensors_of(node, graph)
    have = [f"{v.dtype.name}{list(v.shape)}" for v in found]
    want = [f"{t.dtype.value}{list(t.shape)}" for t in outputs]
    if have != want:
        what = f"the reference of '{function.name}' gives {', '.join(have)}, not "
        raise BuildError(graph.where(node), what + ", ".join(want))
    shapes = [graph.tensor(name).shape for name in node.outputs]
    return tuple(v.reshape(s) for v, s in zip(found, shapes, strict=True))
