"""A model with features in front of it and decisions behind it, and files of these."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem, fitting
from pybuild.features import Decision, Features, log_mel
from pybuild.features.chain import joined, rows_of, time_axis
from pybuild.ir.graph import Graph
from pybuild.model import Model
from pybuild.ops.interpret import interpret, kept
from pybuild.options.recipe import Recipe
from pybuild.passes.stream import streamed

OPTION = "--front"
# what a file's `kind` of features may be
KINDS: Mapping[str, Callable[..., Features]] = {"log_mel": log_mel}


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


# ---- files -----------------------------------------------------------------------


def read_front(path: str | Path) -> Front:
    """A .toml file: [features] with `kind` and what that function takes, [decision],
    and, above them, `every` and `stream`.

    Errors  BuildError with everything that is wrong
    """
    where = Path(path).name
    try:
        told = tomllib.loads(Path(path).read_text())
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
        raise BuildError(f"{OPTION} {where}", why) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BuildError(f"{OPTION} {where}", f"is no TOML: {error}") from None
    found = _unknown(where, told, ("features", "decision", "every", "stream"))
    parts = told.get("features", {}), told.get("decision", {})
    if not all(isinstance(part, dict) for part in parts):
        raise BuildError(where, "[features] and [decision] are tables")
    features = dict(parts[0])
    kind = features.pop("kind", "log_mel")
    if kind not in KINDS:
        hint = fitting(str(kind), KINDS)
        raise BuildError(f"{where}: [features]", f"there is no kind '{kind}'", hint)
    known = [n for n in inspect.signature(KINDS[kind]).parameters if n != "name"]
    found += _unknown(f"{where}: [features]", features, known)
    names = [one.name for one in fields(Decision)]
    found += _unknown(f"{where}: [decision]", parts[1], names)
    every, stream = told.get("every", 0), told.get("stream", False)
    if not isinstance(every, int) or isinstance(every, bool) or every < 0:
        found.append(Problem(where, f"every is {every!r}, not rows"))
    if not isinstance(stream, bool):
        found.append(Problem(where, f"stream is {stream!r}, not true or false"))
    if found:
        raise BuildError.of(found)
    numbers: dict[str, Any] = {
        n: tuple(v) if isinstance(v, list) else v for n, v in parts[1].items()
    }
    try:
        made = KINDS[kind](**features, name=Path(path).stem)
        decision = Decision(**numbers) if "decision" in told else None
    except TypeError as error:
        raise BuildError(f"{where}: [features]", str(error)) from None
    return Front(made.graph, decision, every, stream)


def _unknown(where: str, given: Mapping[str, Any], known: Any) -> list[Problem]:
    return [
        Problem(where, f"there is no '{name}'", fitting(name, known))
        for name in given
        if name not in known
    ]
