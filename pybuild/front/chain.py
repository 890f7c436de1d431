"""A model with features in front of it and decisions behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.features import Decision
from pybuild.features.chain import joined, rows_of, time_axis
from pybuild.ir.graph import Graph
from pybuild.model import Model
from pybuild.ops.interpret import interpret, kept
from pybuild.options.recipe import Recipe
from pybuild.passes.stream import streamed


@dataclass(frozen=True)
class Front:
    """What stands around a net.

    features  graph of one input of samples, one output: a row
    every     rows of features for each run of the net; 0: all of the input of a net
              with state, else one
    stream    the net computes only what new rows add, with the same bits
    """

    features: Graph
    decision: Decision | None = None
    every: int = 0
    stream: bool = False


def with_front(model: Model, front: Front) -> Model:
    """The model whose input is samples.

    Errors  BuildError where features and net do not fit
    """
    net = model.lower()
    bands = front.features.tensor(front.features.outputs[0]).size
    rows = rows_of(net, bands)
    every = front.every
    if front.stream:
        axis = time_axis(net, bands)
        net = streamed(net, {net.inputs[0]: (axis, every)})
        rows = rows_of(net, bands)
        every = rows
    every = every or (rows if net.state else 1)
    graph = joined(front.features, replace(net, windows={}), front.decision, every)
    recipe = Recipe(None, model.recipe.load)  # no file tells of all of it
    return replace(model.with_graph(graph), recipe=recipe)


class Chain:
    """Samples in, decisions out: features, net and what follows as one model.

    model    to be built as any other: pybuild.build(chain)
    graph    input `samples` int16[samples]; samples: of a run, which is a decision
    """

    def __init__(self, model: Model) -> None:
        self.model, self.graph = model, model.graph
        self.samples = model.graph.tensor(model.graph.sampled).size
        self._lowered = model.lower()

    def __repr__(self) -> str:
        outputs = ", ".join(self.graph.outputs)
        return f"Chain({self.samples} samples a run -> {outputs})"

    def __call__(self, samples: Any) -> dict[str, Array]:
        """All outputs of a whole recording that begins with silence, run after run,
        with the bits of the device.

        Shapes   samples int16[n]; each output [n // self.samples, ...]
        Errors   BuildError for another type
        """
        given = np.asarray(samples)
        if given.dtype != np.int16 or given.ndim != 1:
            what = f"samples are {given.dtype.name}{list(given.shape)}"
            raise BuildError(self.graph.name, what, "int16[n]")
        graph, state = self._lowered, None
        found: dict[str, list[Array]] = {name: [] for name in graph.outputs}
        for at in range(0, len(given) - self.samples + 1, self.samples):
            part = given[at : at + self.samples]
            values = interpret(graph, {graph.sampled: part}, state)
            state = kept(graph, values)
            for name, rows in found.items():
                rows.append(values[name])
        shapes = {n: (0, *graph.tensor(n).shape) for n in found}
        return {
            name: np.stack(rows) if rows
            else np.zeros(shapes[name], graph.tensor(name).dtype.numpy)
            for name, rows in found.items()
        }  # fmt: skip

    def build(self, out: str | Path | None = None, **options: Any) -> Any:
        """As Model.build()."""
        return self.model.build(out, **options)
