"""An ONNX node and an ONNX model as plain values, free of protobuf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem
from pybuild.records import dataclass

MICROSOFT = "com.microsoft"
TORCH = "pybuild.torch"  # of programs of torch that are written as ONNX; of no file


@dataclass(frozen=True)
class Op:
    """A node of the file.

    where   its place, for messages
    opset   version of its domain
    """

    kind: str
    domain: str
    name: str
    where: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 13

    @property
    def output(self) -> str:
        return self.outputs[0]

    @property
    def reads(self) -> tuple[str, ...]:
        """The node's inputs, and the names that its subgraphs read."""
        inside = [
            name
            for value in self.attrs.values()
            for node in getattr(value, "node", ())
            for name in node.input
        ]
        return (*self.inputs, *inside)

    def input(self, index: int) -> str:
        """Return the name of an input, "" if it is absent."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def integer(self, name: str, default: int) -> int:
        return int(self.attrs.get(name, default))

    def integers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(v) for v in self.attrs.get(name, default))

    def invalid(self, what: str, hint: str = "") -> BuildError:
        """Return an error for a node that is invalid or unsupported."""
        return BuildError(self.where, what, hint)


@dataclass(frozen=True)
class Boundary:
    """An input or output of the model; the type is numpy's name for it."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class OnnxModel:
    """The checked contents of the file: functions are inlined, and every size is known.

    problems  problems that do not prevent examining the rest
    opened    dimensions that the user must give, by their name for --input-dim
    misfit    onnx's report of shapes or types that do not fit; empty if all fit
    told      types of intermediate tensors, to examine nodes after a problem
    """

    source: str
    name: str
    ops: tuple[Op, ...]
    inputs: tuple[Boundary, ...]
    outputs: tuple[Boundary, ...]
    constants: Mapping[str, Array]
    problems: Sequence[Problem] = ()
    opened: Mapping[str, Problem] = field(default_factory=dict)
    misfit: tuple[Problem, ...] = ()
    told: Mapping[str, Boundary] = field(default_factory=dict)
