"""A program of torch.export as plain values, free of JSON and of torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.records import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Ref:
    """A tensor of the program, by name."""

    name: str


@dataclass(frozen=True)
class Kind:
    """An element type, by numpy's name."""

    name: str


@dataclass(frozen=True)
class Call:
    """A node: an operator with its arguments by name, as far as they are given.

    target   "aten.conv2d.default"
    outputs  names; "" for an output that nothing reads
    where    its place, for messages
    """

    target: str
    name: str
    args: Mapping[str, Any]
    outputs: tuple[str, ...]
    where: str

    def get(self, name: str, default: Any = None) -> Any:
        value = self.args.get(name)
        return default if value is None else value

    def tensor(self, *names: str) -> str:
        """Return the name of an input that must be a tensor, from one of these
        arguments."""
        for name in names:
            if isinstance(self.args.get(name), Ref):
                return str(self.args[name].name)
        raise self.invalid(f"has no tensor '{names[0]}'")

    def ints(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        value = self.get(name, default)
        return tuple(value) if isinstance(value, list | tuple) else (value,)

    def invalid(self, what: str, hint: str = "") -> BuildError:
        return BuildError(self.where, what, hint)


@dataclass(frozen=True)
class Program:
    """The contents of the file, with every size as a number.

    weights  parameters, buffers and constants, by the names that nodes use
    shapes   the shape of every tensor
    kinds    numpy's name of every tensor's element type
    mutated  buffer -> the tensor with its value after a run
    """

    source: str
    calls: tuple[Call, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: Mapping[str, Array]
    shapes: Mapping[str, Shape]
    kinds: Mapping[str, str]
    mutated: Mapping[str, str] = field(default_factory=dict)
