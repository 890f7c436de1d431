"""Graphs made by hand: inputs, constants, parameters, operators by name, outputs.

Every mistake is a BuildError at the line that makes it. Knows no file format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, Problem
from pybuild.frontends.graphjson.values import quant_facts, quant_of
from pybuild.ir.graph import Attr, Graph, Node, Quant, Tensor, verify
from pybuild.ops import OPERATORS
from pybuild.ops.base.function import CALL, Function
from pybuild.ops.base.signatures import misfits

# scale and zero point of the whole tensor, or everything
AnyQuant = Quant | tuple[float, int] | None
Type = tuple[Sequence[int], str]
# whose output is quantised as the first input, unless something else is said
_KEEPS_QUANT = (
    "avg_pool2d", "clip", "concat", "copy", "max_pool2d", "pad", "reshape", "slice",
    "transpose",
)  # fmt: skip
_MADE = {"quantize": DType.INT8, "dequantize": DType.FLOAT32}
_DO_NOT_FIT = (
    ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError,
)  # fmt: skip


class GraphBuilder:
    """Makes a graph one call at a time; each call returns the tensor that it makes.

    Owner   arrays are copied; build() may be called again after more calls
    Errors  BuildError naming the node
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self._inputs: list[str] = []
        self._lazy: tuple[str, ...] = ()
        self._outputs: dict[str, str] = {}  # output -> the tensor that it is
        self._nodes: list[Node] = []
        self._tensors: dict[str, Tensor] = {}
        self._constants: dict[str, Array] = {}
        self._parameters: dict[str, str] = {}

    def input(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str = "float32",
        quant: AnyQuant = None,
        lazy: bool = False,
    ) -> Tensor:
        """Adds an input, which is set before each run.

        lazy   it gets no memory until it is bound
        quant  real = scale * (q - zero_point): (scale, zero_point), or a Quant
        """
        where = f"{self.name}: input '{name}'"
        made = self._checked(where, name, shape, dtype, quant)
        self._tensors[name] = made
        self._inputs.append(name)
        self._lazy += (name,) * lazy
        return made

    def constant(self, name: str, value: Any, quant: AnyQuant = None) -> Tensor:
        """Adds values that never change; the optimiser may use them."""
        return self._value(f"{self.name}: constant '{name}'", name, value, quant)

    def parameter(self, name: str, value: Any, quant: AnyQuant = None) -> Tensor:
        """Adds weights that can be replaced after the build, by this name."""
        made = self._value(f"{self.name}: parameter '{name}'", name, value, quant)
        self._parameters[name] = name
        return made

    def op(
        self,
        op: str,
        *inputs: Tensor | None,
        name: str = "",
        shape: Sequence[int] | None = None,
        dtype: str | None = None,
        quant: AnyQuant = None,
        device: int = 0,
        **attrs: Attr,
    ) -> Tensor:
        """Adds an operator and returns its output; None stands for an omitted input.

        shape         of the output, for `reshape` only: else it follows
        dtype, quant  of the output, where they do not follow from the inputs
        attrs         those of the operator, as in pybuild/ops/base/signatures.py
        """
        name = self._fresh(name or op, given=bool(name))
        where = f"{self.name}: node '{name}' ({op})"
        if op not in OPERATORS or op == CALL:
            known = ", ".join(sorted(OPERATORS.keys() - {CALL}))
            what = f"the operator '{op}' does not exist"
            raise BuildError(where, what, f"one of {known}")
        if shape is not None and op != "reshape":
            raise BuildError(where, "shape= is for reshape only; here it follows")
        reads = self._reads(where, inputs)
        frozen = {key: _tuples(value) for key, value in attrs.items()}
        node = Node(op, name, reads, (name,), frozen, _device(where, device))
        wrong = [Problem(where, what) for what in misfits(node)]
        if reads and not reads[0]:
            wrong.append(Problem(where, "input 0 is missing"))
        if wrong:
            raise BuildError.of(wrong)
        first = self._tensors[reads[0]]
        kind = _MADE.get(op, first.dtype) if dtype is None else _dtype(where, dtype)
        if quant is None and op in _KEEPS_QUANT:
            quant = first.quant
        made = Tensor(name, _shape(where, shape or ()), kind, _quant(where, quant, ()))
        return self._add(where, node, made)

    def call(
        self,
        function: Function,
        *inputs: Tensor,
        outputs: Sequence[Type],
        name: str = "",
        device: int = 0,
    ) -> tuple[Tensor, ...]:
        """Adds a call of a user's function and returns its outputs.

        outputs  shape and type of each
        """
        name = self._fresh(name or getattr(function, "name", ""), given=bool(name))
        where = f"{self.name}: node '{name}' (call)"
        if not isinstance(function, Function):
            hint = "make it with pybuild.function(name, ...)"
            raise BuildError(where, f"{function!r} is not a function", hint)
        if function.op:
            hint = f"op('{function.op}', ...)"
            raise BuildError(where, f"{function!r} is an operator", hint)
        if not outputs:
            raise BuildError(where, "has no outputs")
        reads = self._reads(where, inputs)
        names = tuple(name if i == 0 else f"{name}:{i}" for i in range(len(outputs)))
        made = tuple(
            self._checked(where, output, shape, dtype, None)
            for output, (shape, dtype) in zip(names, outputs, strict=True)
        )
        attrs = {"function": function, "flat": False}
        node = Node(CALL, name, reads, names, attrs, _device(where, device))
        self._nodes.append(node)
        self._tensors.update(zip(names, made, strict=True))
        return made

    def output(self, tensor: Tensor, name: str = "") -> None:
        """Makes a tensor an output of the model, under its own or another name."""
        name = name or getattr(tensor, "name", "")
        where = f"{self.name}: output '{name}'"
        if not self._reads(where, (tensor,))[0]:
            raise BuildError(where, "input 0 is missing")
        if name in self._outputs:
            raise BuildError(where, "there is an output of this name")
        if name != tensor.name and name in self._tensors:
            raise BuildError(where, "another tensor has this name")
        self._outputs[name] = tensor.name

    def build(self) -> Graph:
        """Returns the graph so far.

        Errors  BuildError without an output
        """
        if not self._outputs:
            hint = "output(tensor) makes a tensor one"
            raise BuildError(self.name, "the graph has no outputs", hint)
        graph = Graph(
            self.name,
            self.name,
            tuple(self._nodes),
            dict(self._tensors),
            tuple(self._inputs),
            tuple(self._outputs),
            dict(self._constants),
            dict(self._parameters),
            self._lazy,
        )
        graph = _named_outputs(graph, self._outputs)
        verify(graph)
        return graph

    # ---- parts ----------------------------------------------------------------

    def _checked(
        self,
        where: str,
        name: str,
        shape: Sequence[int],
        dtype: str,
        quant: AnyQuant,
    ) -> Tensor:
        """A tensor whose name is free."""
        if not isinstance(name, str) or not name:
            raise BuildError(where, f"{name!r} is not a name")
        if name in self._tensors or name in self._outputs:
            raise BuildError(where, "another tensor has this name")
        dims, kind = _shape(where, shape), _dtype(where, dtype)
        return Tensor(name, dims, kind, _quant(where, quant, dims))

    def _value(self, where: str, name: str, value: Any, quant: AnyQuant) -> Tensor:
        array = np.array(value, order="C")
        made = self._checked(where, name, array.shape, array.dtype.name, quant)
        self._tensors[name] = made
        self._constants[name] = array
        return made

    def _fresh(self, name: str, given: bool) -> str:
        """The name of a node and its output; a given one must not be taken."""
        taken = self._tensors.keys() | self._outputs.keys()
        if given and name in taken:
            what = "another tensor has this name"
            raise BuildError(f"{self.name}: node '{name}'", what)
        made, count = name, 1
        while made in taken:
            count += 1
            made = f"{name}_{count}"
        return made

    def _reads(self, where: str, inputs: Sequence[Tensor | None]) -> tuple[str, ...]:
        names = []
        for index, tensor in enumerate(inputs):
            if tensor is None:
                names.append("")
            elif not isinstance(tensor, Tensor):
                what = f"input {index} is {type(tensor).__name__}, not a tensor of "
                hint = "constant(name, value) or parameter(name, value) makes one"
                raise BuildError(where, what + "the builder", hint)
            elif self._tensors.get(tensor.name) != tensor:
                what = f"input {index}, '{tensor.name}', is of another builder"
                raise BuildError(where, what)
            else:
                names.append(tensor.name)
        return tuple(names)

    def _add(self, where: str, node: Node, made: Tensor) -> Tensor:
        """The node, with the type that its operator infers for its output."""
        tensors = {**self._tensors, node.output: made}
        seen = Graph(self.name, self.name, (), tensors, (), (), self._constants)
        try:
            ((shape, dtype),) = OPERATORS[node.op].infer(node, seen)
        except _DO_NOT_FIT as error:
            what = (
                f"its attributes do not fit its inputs ({error or 'no reason known'})"
            )
            raise BuildError(where, what) from None
        if made.dtype is not dtype:
            what = f"its output is {dtype.value}, not {made.dtype.value}"
            raise BuildError(where, what)
        _quant(where, made.quant, shape)
        self._tensors[node.output] = replace(made, shape=shape)
        self._nodes.append(node)
        return self._tensors[node.output]


def _named_outputs(graph: Graph, outputs: dict[str, str]) -> Graph:
    """Each output as a tensor of its name: renamed if a node makes it, else copied."""
    made = {name for node in graph.nodes for name in node.outputs}
    names = {
        tensor: output
        for output, tensor in reversed(outputs.items())
        if tensor in made and tensor not in outputs
    }
    nodes = [_renamed(node, names) for node in graph.nodes]
    tensors = {
        names.get(name, name): replace(tensor, name=names.get(name, name))
        for name, tensor in graph.tensors.items()
    }
    for output, source in outputs.items():
        if output not in tensors:
            here = names.get(source, source)
            nodes.append(Node("copy", output, (here,), (output,)))
            tensors[output] = replace(tensors[here], name=output)
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


def _renamed(node: Node, names: dict[str, str]) -> Node:
    inputs = tuple(names.get(name, name) for name in node.inputs)
    outputs = tuple(names.get(name, name) for name in node.outputs)
    return replace(node, inputs=inputs, outputs=outputs)


def _shape(where: str, shape: Sequence[int]) -> tuple[int, ...]:
    try:
        dims = tuple(int(dim) for dim in shape)
    except (TypeError, ValueError):
        raise BuildError(where, f"{shape!r} is not a shape") from None
    if min(dims, default=0) < 0:
        raise BuildError(where, f"has shape {list(dims)}")
    return dims


def _dtype(where: str, name: str) -> DType:
    try:
        return DType(name)
    except ValueError:
        hint = f"one of {', '.join(d.value for d in DType)}"
        raise BuildError(where, f"the type '{name}' is not supported", hint) from None


def _quant(where: str, quant: AnyQuant, shape: Sequence[int]) -> Quant | None:
    """The quantisation of a tensor; one along an axis is checked against its shape."""
    if quant is None:
        return None
    try:
        if not isinstance(quant, Quant):
            quant = Quant((quant[0],), (quant[1],))
        plain = Quant(tuple(map(float, quant.scale)), quant.zero_point, quant.axis)
        dims = tuple(shape) if shape else (len(plain.scale),) * ((plain.axis or 0) + 1)
        return quant_of(quant_facts(plain), dims)
    except (TypeError, ValueError, IndexError) as error:
        hint = "give (scale, zero_point), or a pybuild.ir.graph.Quant"
        what = f"{quant!r} is not a quantisation of it: {error}"
        raise BuildError(where, what, hint) from None


def _device(where: str, device: int) -> int:
    if not isinstance(device, (int, np.integer)) or device < 0:
        raise BuildError(where, f"device {device!r} is not an index into the devices")
    return int(device)


def _tuples(value: Attr) -> Attr:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
