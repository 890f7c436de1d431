"""One ONNX node and one ONNX model as plain values, free of protobuf."""

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
        """Its inputs, and the names that graphs inside it read."""
        inside = [
            name
            for value in self.attrs.values()
            for node in getattr(value, "node", ())
            for name in node.input
        ]
        return (*self.inputs, *inside)

    def input(self, index: int) -> str:
        """The name of an input, "" where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def integer(self, name: str, default: int) -> int:
        return int(self.attrs.get(name, default))

    def integers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(v) for v in self.attrs.get(name, default))

    def invalid(self, what: str, hint: str = "") -> BuildError:
        """The error of a node that means nothing or that we cannot do."""
        return BuildError(self.where, what, hint)


@dataclass(frozen=True)
class Boundary:
    """An input or output of the model; the type is numpy's name for it."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class OnnxModel:
    """The contents of the file: checked, functions inlined, every size known.

    problems  that do not keep the rest from being examined
    opened    dimensions that the user must give; by name of --input-dim
    misfit    where shapes or types do not fit, as onnx says it; empty if they do
    told      types of tensors between, to examine what follows a problem
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
