"""The compiler: a model file, passes, kernels, plan, tables, C or machine code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pybuild import passes
from pybuild.cores.core_plan import cores_problems, planned
from pybuild.dtype import Array
from pybuild.ecosystems.tvm import must_not_clash, tvm_problems
from pybuild.emit.tables.assemble import make_tables
from pybuild.emit.tables.names import chosen_prefix
from pybuild.errors import BuildError, Problem, all_known, fitting
from pybuild.files.garbage_collection import seldom_collected
from pybuild.ir.graph import Graph, signature, verify
from pybuild.library import Library, with_image
from pybuild.options.option import options_in, parse_options
from pybuild.options.recipe import Recipe
from pybuild.options.regions import RegionSpec
from pybuild.options.table import ROUNDINGS, BuildOptions
from pybuild.package.folder import write_tree
from pybuild.package.grid import as_html
from pybuild.package.page import graph_page
from pybuild.params.files import read_arrays
from pybuild.passes import Seen
from pybuild.passes.layout import layout_of_pushed, set_layout
from pybuild.passes.new_values import with_values
from pybuild.passes.placement.place import Rules
from pybuild.passes.state import AUTO, connected, obvious
from pybuild.plan.plan import Plan
from pybuild.progress import Progress, Steps, silent
from pybuild.quantisation.report import Quantisation
from pybuild.records import dataclass
from pybuild.select.build_seconds import build_seconds
from pybuild.select.constant_args import with_constant_args
from pybuild.select.devices import (
    Targets,
    offers,
    processor_of,
    table_of,
)
from pybuild.select.for_devices import for_devices, streams
from pybuild.ways import Ways


@dataclass(frozen=True, repr=False)
class Model:
    """A model as in its file; build() does everything else.

    rounding  the default rule of its format
    digest    SHA-256 of the file
    quantisation  what quantising cost, of a model that quantise() made
    recipe    what it was made of
    file_bytes  of the file, and of those that hold its weights; 0: there is none
    """

    path: str
    graph: Graph
    rounding: str
    digest: str
    quantisation: Quantisation | None = None
    recipe: Recipe = field(default_factory=Recipe)
    file_bytes: int = 0
    _lowered: dict[tuple[object, ...], Graph] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __repr__(self) -> str:
        graph = self.graph
        ends = map(graph.tensor, graph.inputs), map(graph.tensor, graph.outputs)
        weights = sum(value.nbytes for value in graph.constants.values())
        costs = f"{len(graph.nodes)} layers, constants {weights:,} bytes"
        return f"Model({Path(self.path).name!r}, {signature(*ends)}, {costs})"

    def _repr_html_(self) -> str:
        try:
            return as_html(graph_page(self.lower()))
        except BuildError as error:
            return as_html(tuple(map(str, error.problems)))

    def lower(
        self,
        rounding: str | None = None,
        layout: Mapping[str, str] | None = None,
        storage: str = "planned",
        seen: Seen | None = None,
    ) -> Graph:
        """The graph after all passes.

        storage  "given": with few passes, so that the storage of the file still fits
        seen  is handed the name of each pass, and the graph after it
        Errors  BuildError with every finding
        """
        rule = rounding or self.rounding
        if rule not in ROUNDINGS:
            hint = fitting(rule, ROUNDINGS)
            raise BuildError("--rounding", f"'{rule}' is not known", hint)
        key = (rule, tuple(sorted((layout or {}).items())), storage)
        if key not in self._lowered or seen is not None:
            options = passes.PassOptions(rounding=rule, layout=dict(layout or {}))
            given = self.graph.storage if storage == "given" else {}
            graph = replace(self.graph, storage=given)
            self._lowered[key] = passes.run(graph, options, seen)
        return self._lowered[key]

    def after_each_pass(self, asked: BuildOptions) -> list[tuple[str, Graph]]:
        """The graph of the file, and the graph after each pass, by the pass's name."""
        model = self.with_parameters(asked.params)
        found = [("as the file gives it", model.graph)]

        def seen(name: str, graph: Graph) -> None:
            found.append((name, graph))

        graph = model.lower(asked.rounding, asked.layout, asked.storage, seen)
        for_devices(graph, asked, table_of(asked.target), seen)
        return found

    def with_graph(self, graph: Graph) -> Model:
        """The model with another graph, of which nothing is known yet."""
        return replace(self, graph=graph, _lowered={})

    def with_parameters(self, params: str | Collection[str] | None) -> Model:
        """The model with these constants replaceable; see build()."""
        if params is None:
            return self
        constants = self.graph.constants
        names: Collection[str] = () if params == "constant" else params
        if params == "replaceable":
            names = [n for n in constants if constants[n].ndim > 0]
        elif isinstance(names, str):
            names = (names,)
        names = self.graph.meant(names, constants)
        unknown = [name for name in names if name not in constants]
        all_known(unknown, map(self.graph.shown, constants), "--params")
        graph = replace(self.graph, parameters={n: n for n in sorted(names)})
        return self.with_graph(graph)

    def with_weights(self, weights: bytes | Mapping[str, Array] | None) -> Model:
        """The model with other values of constants, by their names; from the bytes of a
        parameter file, those that the model has.

        Errors  BuildError for unknown names, other shapes or types, or a file with none
        """
        values: Mapping[str, Array] = {}
        if isinstance(weights, Mapping):
            values = weights
        elif weights is not None:
            given = read_arrays(bytes(weights), "weights")
            values = {n: v for n, v in given.items() if n in self.graph.constants}
            if not values:
                all_known(given, map(self.graph.shown, self.graph.constants), "weights")
        if not values:
            return self
        made = self.with_graph(with_values(self.graph, values))
        text = "".join([self.digest, made.graph.dump()])
        constants = made.graph.constants
        parts = [text.encode(), *(constants[n].tobytes() for n in sorted(constants))]
        digest = hashlib.sha256(b"".join(parts)).hexdigest()
        recipe = replace(self.recipe, model=None)  # no file tells of them
        return replace(made, digest=digest, recipe=recipe)

    def with_state(self, pairs: Mapping[str, str]) -> Model:
        """The model with state: {input: output} feeds each output to the input in the
        next run, see passes/state.py; {"auto": "auto"} finds the obvious pairs.
        """
        if not pairs:
            return self
        if dict(pairs) == AUTO and "auto" not in self.graph.inputs:
            pairs = obvious(self.graph)
        graph, recipe = connected(self.graph, pairs), self.recipe.with_state(pairs)
        return replace(self.with_graph(graph), recipe=recipe)

    def problems(self, **options: Any) -> list[Problem]:
        """Everything that would stop a build with these options, [] if nothing."""
        return [*self._own_problems(), *self.option_problems(**options)]

    def option_problems(self, **options: Any) -> list[Problem]:
        """The problems of these options that can be found without looking for
        kernels."""
        return self._wrong(*parse_options(BuildOptions, options))

    def _own_problems(self) -> list[Problem]:
        try:
            graph = self.lower()
            devices = max((node.device for node in graph.nodes), default=0) + 1
            offers(graph, table_of(dict.fromkeys(range(devices), "generic")))
        except BuildError as error:
            return list(error.problems)
        return []

    def _wrong(self, asked: BuildOptions, found: list[Problem]) -> list[Problem]:
        """`found`, targets that cannot be combined, and unknown tensor names."""
        graph = self.graph
        ends = (*graph.inputs, *graph.outputs)
        known = all(problem.where != "--target" for problem in found)
        made_for = processor_of if asked.emit == "obj" and known else table_of
        found = found + tvm_problems(asked) + cores_problems(asked)
        return found + _said(
            [
                lambda: made_for(asked.target),
                lambda: set_layout(graph, asked.layout),
                lambda: self.with_parameters(asked.params),
                lambda: all_known(_ends(graph, asked.lazy), ends, "--lazy"),
                lambda: all_known(asked.push, graph.inputs, "--push"),
                lambda: streams(asked.stream, graph),
            ]
        )

    def build_seconds(self, target: Targets = "generic") -> float:
        """The estimated seconds that build() for these targets will take on this
        machine."""
        return build_seconds(self.graph, target)

    def build(
        self,
        out: str | Path | None = None,
        *,
        name: str | None = None,
        rounding: str | None = None,
        input: str = "reuse",
        target: Targets = "generic",
        optimise: str = "balanced",
        cores: int = 1,
        ram_limit: int | str | Mapping[int, int | str] | None = None,
        layout: Mapping[str, str] | None = None,
        params: str | Collection[str] | None = None,
        lazy: str | Collection[str] | None = None,
        nan: str = "propagate",
        names: str = "full",
        storage: str = "planned",
        compress: str = "none",
        emit: str = "c",
        api: str = "",
        place: Rules | None = None,
        plan: str = "rows",
        regions: str | RegionSpec | Sequence[str | RegionSpec] = (),
        push: str | Collection[str] = (),
        stream: str | Collection[str] = (),
        verify: bool = False,
        alone: bool = True,
        force: bool = False,
        progress: Progress = silent,
    ) -> Library:
        """Plans the model; writes the tree to `out`. Others: as `crt build --help`.

        target  name of a processor, or several by device: {0: the CPU's, 1: ...}
        cores   equal cores that compute a run together (docs/two-cores.md)
        place   device, "capability" or "cost" by layer, operator, "input:NAME", "*"
        params  "constant", "replaceable", or names of weights that users may load,
                share and replace; None: as the model says
        lazy    inputs and outputs without memory until they are bound; None: as made
        nan     "ignore": results of inputs with NaN are not specified (docs/nan.md)
        names, storage  "ids": no names in flash; "given": memory as a graph JSON says
        compress  "none"; "lz4": weights are packed, and unpacked to RAM once for all
                instances; "lz4-layer": each layer's to the arena before it runs
        plan    "rows": layers advance in lock step where that needs less memory, at a
                fair price (docs/memory-model.md); "whole": tensors are held whole
        emit    "c", or "obj": kernels, tables and weights compiled for `target`
        api     "tvm": microTVM's names over the model, too (docs/from-tvm.md)
        push    inputs that the caller hands over in rows: they are never held whole
        stream  "AXIS" of all inputs, or "INPUT=AXIS": a window slides along it, each
                run takes the new frames; ":FRAMES" after it, if not the fewest
        verify  NAME_verify(), which finds bits of weights and tables that have flipped
        regions  pieces of memory, as "dtcm=16K:fast"; (): one a device, as it needs
        force   write to a folder with files of others, too
        progress  called with the steps that are done, and all: progress(1, 5), ...
        alone   False: kernels hold nothing of the layers: other models may share them
        Units   ram_limit: bytes of arena ("64K" is 65536), or of each device's by its
                number
        Errors  BuildError, LimitError; then nothing is written
        """
        values = locals()
        given = {one.keyword: values[one.keyword] for one in options_in(BuildOptions)}
        step = Steps(progress, 4 if out is None else 5)
        with seldom_collected():
            library = self._built(name, *parse_options(BuildOptions, given), step)
            if out is not None:
                write_tree(Path(out), library.files(), library.name, force)
                step()
        return library

    def _built(
        self, name: str | None, asked: BuildOptions, found: list[Problem], step: Steps
    ) -> Library:
        """found  what is wrong with options whatever the model is

        step   four of them: graph, kernels, plan, tables
        """
        if found := self._wrong(asked, found):
            raise BuildError.of([*self._own_problems(), *found])
        model = self.with_parameters(asked.params)
        prefix = must_not_clash(chosen_prefix(name, self.path), asked)
        pushed = _ends(model.graph, asked.push)
        layout = layout_of_pushed(model.graph, pushed, asked.layout)
        asked = replace(asked, layout=layout)
        graph = model.lower(asked.rounding, asked.layout, asked.storage)
        graph = replace(graph, name=prefix)
        table = table_of(asked.target)
        graph = for_devices(graph, asked, table)
        step()
        lazy = tuple(graph.lazy if asked.lazy is None else _ends(graph, asked.lazy))
        asked = replace(asked, lazy=lazy)
        planners = Ways(graph, table, asked).all
        step()
        planner, made, several = planned(planners, asked, table)
        step()
        own = made.settled()
        own = _own(own, asked.optimise) if asked.alone else own
        tables = make_tables(own, prefix, len(table), asked.verify)
        tables = replace(tables, named=asked.names == "full")
        rule = asked.rounding or self.rounding
        library = Library(
            model, made, tables, rule, asked, planner=planner, planners=planners,
            spread=several,
        )  # fmt: skip
        if made.slots:
            library = replace(library, tables=with_image(tables, library.image()))
        step()
        return library


def _ends(graph: Graph, names: Collection[str] | None) -> list[str]:
    """The file's names of inputs and outputs, for names that users may have
    shortened."""
    return graph.meant(names or (), (*graph.inputs, *graph.outputs))


def _own(plan: Plan, optimise: str) -> Plan:
    """The plan with kernels that no other plan shares; for speed, parts of kernels,
    too."""
    candidates = (step.candidate for step in plan.steps)
    made = with_constant_args(candidates, share_parts=optimise != "speed")
    steps = zip(plan.steps, made, strict=True)
    return replace(plan, steps=tuple(replace(s, candidate=c) for s, c in steps))


def _said(asked: Iterable[Callable[[], object]]) -> list[Problem]:
    found: list[Problem] = []
    for one in asked:
        try:
            one()
        except BuildError as error:
            found += error.problems
    return found


def problems_in(rest: object) -> list[Problem]:
    """The problems that later phases find in the part of a model that its front end
    accepts."""
    if not isinstance(rest, Graph):
        return []
    try:
        verify(rest)
        return Model("", rest, "onnx", "").problems()
    except Exception:  # over what is missing; what is missing has been told
        return []
