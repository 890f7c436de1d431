"""A model with features in front of it and decisions behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.features import Decision, Images
from pybuild.features.chain import joined, rows_of, time_axis
from pybuild.features.image_chain import with_camera
from pybuild.features.normalise import folded
from pybuild.ir.graph import Graph
from pybuild.model import Model
from pybuild.ops.interpret import interpret, next_state
from pybuild.options.recipe import Recipe
from pybuild.passes.stream import streamed
from pybuild.records import dataclass


@dataclass(frozen=True)
class Front:
    """The features before a net and the decision after it.

    features  graph of one input of samples, one output: a row; or a camera's pictures,
              whose every frame is a run
    every     rows of features for each run of the net; 0: all of the input of a net
              with state, else one
    stream    the net computes only what new rows add, with the same bits
    """

    features: Graph | Images
    decision: Decision | None = None
    every: int = 0
    stream: bool = False


def with_front(model: Model, front: Front) -> Model:
    """The model whose input is samples, or lines of a camera.

    Errors  BuildError where features and net do not fit
    """
    net, recipe = model.lower(), Recipe(None, model.recipe.load)  # no file tells of all
    if isinstance(front.features, Images):
        if front.every or front.stream:
            raise BuildError(
                net.source,
                "every and stream apply only to models fed with samples",
                "leave out",
            )
        graph = with_camera(front.features, net, front.decision)
        return replace(model.with_graph(graph), recipe=recipe)
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
    return replace(model.with_graph(graph), recipe=recipe)


def normalised(model: Model, mean: Sequence[float], std: Sequence[float]) -> Model:
    """A float32 net whose input is colours from 0 to 1, not (colour - mean) / std: both
    are folded into the weights and the bias of its first convolution.

    mean, std  of each colour
    Returns    input [1, height, width, channels]; where that convolution pads and a
               mean is not 0, with a last channel of ones: images(..., ones=True)
    Errors     BuildError for a net that does not begin with a convolution
    """
    graph = folded(model.lower(), mean, std)
    return replace(
        model.with_graph(graph), recipe=Recipe(None, model.recipe.load)
    )  # fmt: skip


class Chain:
    """Samples or frames in, decisions out: features, net and what follows as one model.

    model    to be built as any other: pybuild.build(chain)
    graph    input `samples` int16[samples], or `lines` uint8[1, height, width, bytes]
    samples  of a run, which is a decision; of a frame its bytes
    """

    def __init__(self, model: Model) -> None:
        self.model, self.graph = model, model.graph
        self.given = model.graph.tensor(model.graph.inputs[0])
        self.samples = self.given.size
        self._lowered = model.lower()

    def __repr__(self) -> str:
        outputs = ", ".join(self.graph.outputs)
        what = "samples" if self.graph.sampled else "bytes of a frame"
        return f"Chain({self.samples} {what} a run -> {outputs})"

    def __call__(self, given: Any) -> dict[str, Array]:
        """All outputs of a whole recording that begins with silence, or of frames, run
        by run, with the bits of the device.

        Shapes   samples int16[n]; or frames uint8[n, height, width * bytes], or with
                 bytes as an axis; each output [runs, ...]
        Errors   BuildError for another type
        """
        graph, state = self._lowered, None
        found: dict[str, list[Array]] = {name: [] for name in graph.outputs}
        for part in self._parts(np.asarray(given)):
            values = interpret(graph, {self.given.name: part}, state)
            state = next_state(graph, values)
            for name, rows in found.items():
                rows.append(values[name])
        shapes = {n: (0, *graph.tensor(n).shape) for n in found}
        return {
            name: np.stack(rows) if rows
            else np.zeros(shapes[name], graph.tensor(name).dtype.numpy)
            for name, rows in found.items()
        }  # fmt: skip

    def _parts(self, given: Array) -> list[Array]:
        """The samples that each run gets."""
        kind, shape = self.given.dtype, self.given.shape
        if self.graph.sampled:
            fits, want = given.ndim == 1, "int16[n]"
        else:
            flat = (shape[1], shape[2] * shape[3])
            fits = given.shape[1:] in (shape[1:], flat)
            want = f"uint8[n, {flat[0]}, {flat[1]}]"
        if given.dtype != kind.numpy or not fits:
            said = "samples" if self.graph.sampled else "frames"
            what = f"{said} are {given.dtype.name}{list(given.shape)}"
            raise BuildError(self.graph.name, what, want)
        if not self.graph.sampled:
            return list(given.reshape(-1, *shape))
        ends = range(self.samples, len(given) + 1, self.samples)
        return [given[at - self.samples : at] for at in ends]

    def build(self, out: str | Path | None = None, **options: Any) -> Any:
        """Does the same as Model.build()."""
        return self.model.build(out, **options)
