"""Models as objects, and what the same kernels give on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pybuild.dtype import Array
from pybuild.emit.content import pieces
from pybuild.model import Library, Model
from pybuild.ops.interpret import interpret


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
    return b"".join(pieces(made.compiled()[f"{made.name}.o"]))


def expected(made: Library, inputs: Iterable[Mapping[str, Array]]) -> Iterator[Known]:
    """What the model means: integers by numpy, as tests/ops knows the host's kernels to
    be; floats by these kernels in the host's JIT, whose bits numpy need not have."""
    graph = made.plan.graph
    floats = any(t.dtype.name.startswith("FLOAT") for t in graph.tensors.values())
    net = made.host("llvm") if floats else None
    for given in inputs:
        if net is None:
            values = interpret(graph, given)
            found = tuple(values[name].tobytes() for name in graph.outputs)
        else:
            net.run(**given)
            found = tuple(net.get_output(n).tobytes() for n in graph.outputs)
        yield Known(made.name, tuple(given[n].tobytes() for n in graph.inputs), found)
    if net is not None:
        net.close()
