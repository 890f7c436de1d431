"""Collects ONNX nodes while a program is converted. Must not know any ATen operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pybuild.dtype import Array
from pybuild.frontends.torch.reader.program import Call, Program

if TYPE_CHECKING:
    from onnx import NodeProto

Handler = Callable[["Writer", Call], None]
# of onnx.TensorProto
KINDS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6,
    "int64": 7, "bool": 9, "float16": 10, "float64": 11, "uint32": 12,
}  # fmt: skip


def each(values: Sequence[int], rank: int) -> list[int]:
    """Return one number for each axis; a single number is repeated for all."""
    return list(values) * rank if len(values) == 1 else list(values)


class Writer:
    """The nodes and constants so far; `call` is the node being converted.

    aliases  tensor -> what is read instead of it
    mutated  buffer that a run changes -> what it holds afterwards
    ranges   scale that the model computes -> the tensor whose range says it, and that
             tensor as int8; dynamic: a tensor dequantised by such a scale -> int8,
             scale, zero point
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = dict(program.weights)
        self.shapes = dict(program.shapes)
        self.kinds = dict(program.kinds)
        self.aliases: dict[str, str] = {}
        self.mutated: dict[str, str] = {}
        self.ranges: dict[str, tuple[str, str]] = {}
        self.dynamic: dict[str, tuple[str, str, str]] = {}
        self._count = 0
        self._makers: dict[str, Call] = {}

    def begin(self, call: Call) -> None:
        self.call, self._count = call, 0

    def name(self, name: str) -> str:
        """Return the current name of a tensor of the program in our graph."""
        return self.aliases.get(name, name)

    def makers(self) -> dict[str, Call]:
        """Map each tensor to the call that makes it."""
        if not self._makers:
            calls = self.program.calls
            self._makers = {name: call for call in calls for name in call.outputs}
        return self._makers

    def known(self, name: str) -> Array | None:
        return self.constants.get(self.name(name))

    def shape(self, name: str) -> tuple[int, ...]:
        if name in self.shapes:
            return self.shapes[name]
        return self.constants[name].shape

    def rank(self, name: str) -> int:
        return len(self.shape(name))

    def kind(self, name: str) -> str:
        if name in self.kinds:
            return self.kinds[name]
        return self.constants[name].dtype.name

    def axis(self, number: int, rank: int) -> int:
        if not -max(rank, 1) <= number < max(rank, 1):
            raise self.call.invalid(f"axis {number} of a tensor of {rank} axes")
        return number % max(rank, 1)

    def fresh(self) -> str:
        self._count += 1
        return f"{self.call.outputs[0] or self.call.name}/{self._count}"

    def const(self, value: Any, kind: str | None = None) -> str:
        name = self.fresh()
        self.constants[name] = np.asarray(value, kind)
        return name

    def ints(self, values: Sequence[int]) -> str:
        return self.const(list(values), "int64")

    def like(self, value: float, other: str) -> str:
        """Return a number as a constant in the type of a tensor."""
        return self.const(value, self.kind(other))

    def op(
        self,
        kind: str,
        *inputs: str,
        to: str | Sequence[str] | None = None,
        **attrs: Any,
    ) -> str:
        """Adds one node, of ONNX unless attrs have a `domain`; returns the name of its
        first output."""
        from onnx import helper

        outputs = [to] if isinstance(to, str) else list(to or [self.fresh()])
        reads = [self.name(name) if name else "" for name in inputs]
        first = next(name for name in outputs if name)
        name = self.call.name if first == self.call.outputs[0] else first
        self.nodes.append(helper.make_node(kind, reads, outputs, name=name, **attrs))
        return outputs[0]

    def give(self, kind: str, *inputs: str, **attrs: Any) -> None:
        """Add the node that makes the first output of the call."""
        self.op(kind, *inputs, to=self.call.outputs[0], **attrs)

    def same(self, name: str, index: int = 0) -> None:
        """Make an output an alias of an input."""
        self.aliases[self.call.outputs[index]] = self.name(name)

    def cast(self, x: str, kind: str) -> str:
        if kind not in KINDS:
            raise self.call.invalid(f"the type {kind} is not supported")
        from onnx import helper

        made = self.fresh()
        node = helper.make_node("Cast", [self.name(x)], [made], name=made)
        node.attribute.append(helper.make_attribute("to", KINDS[kind]))
        self.nodes.append(node)
        return made

    def as_kind(self, x: str, kind: str) -> str:
        """Return the tensor in a type, cast if it has another."""
        have = self.kinds.get(x, "")
        return x if have == kind else self.cast(x, kind)

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        return self.op("Reshape", x, self.ints(shape), allowzero=0)
