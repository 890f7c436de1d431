"""Models as objects, and what the same kernels give on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pybuild.dtype import Array
from pybuild.model import Library, Model


@dataclass(frozen=True)
class Known:
    """One run: the bytes of every input and output, in the model's order."""

    name: str
    inputs: tuple[bytes, ...]
    outputs: tuple[bytes, ...]


def library(
    model: Model, name: str, target: str, rounding: str | None = None
) -> Library:
    return model.build(name=name, target=target, emit="obj", rounding=rounding)


def content(made: Library) -> bytes:
    held = made.compiled()[f"{made.name}.o"]
    assert isinstance(held, bytes)
    return held


def on_host(made: Library, inputs: Iterable[Mapping[str, Array]]) -> Iterator[Known]:
    """What the host's JIT makes of the very same kernels."""
    net = made.host("llvm")
    graph = made.plan.graph
    for given in inputs:
        net.run(**given)
        found = tuple(net.get_output(i).tobytes() for i in range(len(graph.outputs)))
        yield Known(made.name, tuple(given[n].tobytes() for n in graph.inputs), found)
    net.close()
