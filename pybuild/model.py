"""The way through: a model file, passes, kernels, plan, tables, C or machine code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pybuild import passes
from pybuild.emit.assemble import make_tables
from pybuild.emit.names import chosen_prefix
from pybuild.errors import BuildError, Problem, all_known, one_of, require
from pybuild.graph import Graph, signature, verify
from pybuild.kernels.base.candidate import Candidate
from pybuild.library import Library, with_image
from pybuild.package.tree import write_tree
from pybuild.passes.layout import set_layout
from pybuild.passes.placement.place import Rules
from pybuild.passes.state import assigned, closed, connected, opened
from pybuild.passes.stream import streamed
from pybuild.passes.sums import with_sums
from pybuild.plan.plan import Plan, make_plan
from pybuild.plan.regions import Limits
from pybuild.plan.specs import OPTION, RegionSpec, read_regions
from pybuild.quantisation.report import Quantisation
from pybuild.select.choose import Options, Weighed, is_better, narrowed, options_of
from pybuild.select.constant_args import with_constant_args
from pybuild.select.devices import (
    Targets,
    offers,
    on_devices,
    processor_of,
    table_of,
)
from pybuild.select.prices import PRICES
from pybuild.targets.target import Target

ROUNDINGS = ("litert", "tflm", "single", "onnx")
# options of build() that are one of a few words
_WORDS = {
    "--input": ("reuse", "keep", "consumable"),
    "--compress": ("none", "lz4", "lz4-layer"),
    "--names": ("full", "ids"),
    "storage": ("planned", "given"),
    "--optimise": ("size", "balanced", "speed"),
    "--emit": ("c", "obj"),
    "--plan": ("rows", "whole"),
}


@dataclass(frozen=True, repr=False)
class Model:
    """A model as its file gives it; build() makes everything else.

    rounding  the default rule of its format
    digest    SHA-256 of the file
    quantisation  what quantising cost, of a model that quantise() made
    """

    path: str
    graph: Graph
    rounding: str
    digest: str
    quantisation: Quantisation | None = None
    _lowered: dict[tuple[object, ...], Graph] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __repr__(self) -> str:
        graph = self.graph
        ends = map(graph.tensor, graph.inputs), map(graph.tensor, graph.outputs)
        weights = sum(value.nbytes for value in graph.constants.values())
        costs = f"{len(graph.nodes)} layers, constants {weights:,} bytes"
        return f"Model({Path(self.path).name!r}, {signature(*ends)}, {costs})"

    def lower(
        self,
        rounding: str | None = None,
        layout: Mapping[str, str] | None = None,
        storage: str = "planned",
    ) -> Graph:
        """The graph after all passes.

        storage  "given": with few passes, so that the storage of the file still fits
        Errors  BuildError with every finding
        """
        rule = rounding or self.rounding
        if rule not in ROUNDINGS:
            raise BuildError("--rounding", f"'{rule}' is not known", one_of(ROUNDINGS))
        key = (rule, tuple(sorted((layout or {}).items())), storage)
        if key not in self._lowered:
            options = passes.PassOptions(rounding=rule, layout=dict(layout or {}))
            given = self.graph.storage if storage == "given" else {}
            graph = replace(self.graph, storage=given)
            self._lowered[key] = passes.run(graph, options)
        return self._lowered[key]

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
        all_known(names, constants, "--params")
        graph = replace(self.graph, parameters={n: n for n in sorted(names)})
        return replace(self, graph=graph, _lowered={})

    def with_state(self, pairs: Mapping[str, str]) -> Model:
        """The model whose inputs are what outputs were: {input: output}, see
        passes/state.py.
        """
        if not pairs:
            return self
        return replace(self, graph=connected(self.graph, pairs), _lowered={})

    def problems(self) -> list[Problem]:
        """Everything that would stop a build, [] if nothing."""
        try:
            graph = self.lower()
            devices = max((node.device for node in graph.nodes), default=0) + 1
            offers(graph, table_of(dict.fromkeys(range(devices), "generic")))
        except BuildError as error:
            return list(error.problems)
        return []

    def _require(
        self, found: list[Problem], layout: Mapping[str, str],
        params: str | Collection[str] | None, lazy: Collection[str],
        push: Collection[str], stream: Collection[str],
    ) -> None:  # fmt: skip
        """That options that name tensors fit the model, too.

        Errors  BuildError with `found`, with those, and with the model's problems
        """
        graph = self.graph
        ends = (*graph.inputs, *graph.outputs)
        found += _said(
            [
                lambda: set_layout(graph, layout),
                lambda: self.with_parameters(params),
                lambda: all_known(lazy, ends, "--lazy"),
                lambda: all_known(push, graph.inputs, "--push"),
                lambda: _streams(stream, graph),
            ]
        )
        if found:
            raise BuildError.of((*self.problems(), *found))

    def build(
        self,
        out: str | Path | None = None,
        *,
        name: str | None = None,
        rounding: str | None = None,
        input: str = "reuse",
        target: Targets = "generic",
        optimise: str = "balanced",
        ram_limit: Limits = None,
        layout: Mapping[str, str] | None = None,
        params: str | Collection[str] | None = None,
        lazy: Collection[str] | None = None,
        names: str = "full",
        storage: str = "planned",
        compress: str = "none",
        emit: str = "c",
        place: Rules | None = None,
        plan: str = "rows",
        regions: Sequence[str | RegionSpec] = (),
        push: Collection[str] = (),
        stream: Collection[str] = (),
        alone: bool = True,
    ) -> Library:
        """Plans the model; writes the tree to `out`. Others: as `crt build --help`.

        target  name of a processor, or several by device: {0: the CPU's, 1: ...}
        place   device by layer or operator, "input:NAME" or "output:NAME", or "*":
                all others, which may be placed by "capability" or "cost"
        params  "constant", "replaceable", or names of weights that users may load,
                share and replace; None: as the model says
        lazy    inputs and outputs without memory until they are bound; None: as made
        names   "full", or "ids": no names in flash, tensors have numbers
        storage  "given": tensors share memory as a graph JSON file says, where it does
        compress  "none"; "lz4": weights are packed, and unpacked to RAM once for all
                instances; "lz4-layer": each layer's to the arena before it runs
        plan    "rows": layers advance in lock step where that needs less memory, at a
                fair price (docs/memory-model.md); "whole": tensors are held whole
        emit    "c", or "obj": kernels, tables and weights compiled for `target`
        push    inputs that the caller hands over in rows: they are never held whole
        stream  "AXIS" of all inputs, or "INPUT=AXIS": a window slides along it, each
                run takes the new frames; ":FRAMES" after it, if not the fewest
        regions  pieces of memory, as "dtcm=16K:fast"; (): one a device, as it needs
        alone   False: kernels hold nothing of the layers: other models may share them
        Units   ram_limit: bytes of arena, or of each device's by its number
        Errors  BuildError, LimitError; then nothing is written
        """
        words = (input, compress, names, storage, optimise, emit, plan)
        rule = rounding or self.rounding
        found = option_problems(target, words, rule, regions)
        self._require(found, layout or {}, params, lazy or (), push, stream)
        model, prefix = self.with_parameters(params), chosen_prefix(name, self.path)
        graph = replace(model.lower(rounding, layout, storage), name=prefix)
        table = table_of(target)
        graph = streamed(graph, _streams(stream, graph))
        graph = assigned(closed(on_devices(opened(graph), table, place or {}), graph))
        rows, spent = plan == "rows" or bool(push), _spent(input, graph)
        graph, kernels, weighed = _kernels(graph, table, optimise, rows)
        lazy = graph.lazy if lazy is None else lazy
        specs = _specs(regions, len(table), push, graph)
        made = make_plan(
            graph, lambda node, _: kernels[node.output], input == "keep", ram_limit,
            lazy, compress, plan == "rows", specs, push,
            Weighed(weighed, optimise) if rows else None, spent, optimise == "size",
        )  # fmt: skip
        options = {
            "rounding": rounding, "input": input, "target": target, "lazy": lazy,
            "optimise": optimise, "layout": layout, "compress": compress,
            "names": names, "storage": storage, "emit": emit, "place": place,
            "plan": plan, "regions": [s.text for s in specs], "push": [*push],
            "stream": [*stream], "alone": alone, "ram_limit": ram_limit,
        }  # fmt: skip
        own = _own(made, optimise) if alone else made
        tables = replace(make_tables(own, prefix, len(table)), named=names == "full")
        library = Library(model, made, tables, rule, options, kernels=weighed)
        if made.slots:
            library = replace(library, tables=with_image(tables, library.image()))
        if out is not None:
            write_tree(Path(out), library.files(), (library.name,))
        return library


def _kernels(
    graph: Graph, table: Sequence[Target], optimise: str, rows: bool
) -> tuple[Graph, dict[str, list[Candidate]], Options]:
    """What the plan may take for each layer, and what there was.

    rows  layers hand over rows: it depends on memory which kernels fit; else sums are
          the ends of layers, where that is worth more, on a core that is known: on this
          machine each layer has its own time
    """
    found = offers(graph, table, optimise)
    targets = {node.output: table[node.device] for node in graph.nodes}
    options = options_of(found, targets)
    if rows:
        return graph, found, options
    known = all(target.name in PRICES for target in table)
    ended = with_sums(graph) if known else graph
    ends = tuple(node for node in ended.nodes if node.of)
    if ends:
        gone = {one.output for node in ends for one in node.of}
        made = {layer: c for layer, c in found.items() if layer not in gone}
        made |= offers(replace(graph, nodes=ends), table, optimise)
        fewer = options_of(made, targets)
        sums = [found[node.output][0] for node in ends]
        calls = sum(c.images * c.bands for c in sums)
        if is_better(fewer, options, optimise, calls):
            graph, found, options = ended, made, fewer
    return graph, narrowed(found, options, optimise), options


def _spent(word: str, graph: Graph) -> tuple[str, ...]:
    """Inputs that may be written over while they are still being read."""
    return graph.inputs if word == "consumable" else ()


def _own(plan: Plan, optimise: str) -> Plan:
    """With kernels that are this plan's alone; parts of kernels, too, for speed."""
    candidates = (step.candidate for step in plan.steps)
    made = with_constant_args(candidates, share_parts=optimise != "speed")
    steps = zip(plan.steps, made, strict=True)
    return replace(plan, steps=tuple(replace(s, candidate=c) for s, c in steps))


def option_problems(
    target: Targets, words: Sequence[str], rounding: str,
    regions: Sequence[str | RegionSpec],
) -> list[Problem]:  # fmt: skip
    """What is wrong with options whatever the model is, all of it.

    words  of the options in _WORDS, in their order; "obj" wants a target with objects
    """
    asked: list[Callable[[], object]] = [
        functools.partial(require, word, known, option)
        for word, (option, known) in zip(words, _WORDS.items(), strict=True)
    ]
    asked.append(lambda: require(rounding, ROUNDINGS, "--rounding"))
    asked.append(lambda: (processor_of if "obj" in words else table_of)(target))
    asked.append(lambda: read_regions(regions))
    return _said(asked)


def _said(asked: Iterable[Callable[[], object]]) -> list[Problem]:
    found: list[Problem] = []
    for one in asked:
        try:
            one()
        except BuildError as error:
            found += error.problems
    return found


def problems_in(rest: object) -> list[Problem]:
    """What later phases find in the part of a model that its front end calls sound."""
    if not isinstance(rest, Graph):
        return []
    try:
        verify(rest)
        return Model("", rest, "onnx", "").problems()
    except Exception:  # over what is missing; what is missing has been told
        return []


def _streams(given: Collection[str], graph: Graph) -> dict[str, tuple[int, int]]:
    """Axis and frames (0: the fewest) of each input that is a stream."""
    found: dict[str, tuple[int, int]] = {}
    for text in given:
        name, _, where = text.rpartition("=")
        axis, colon, frames = where.partition(":")
        try:
            numbers = int(axis), int(frames) if colon else 0
        except ValueError:
            hint = "AXIS, AXIS:FRAMES or INPUT=AXIS:FRAMES"
            raise BuildError("--stream", f"'{text}' is no axis", hint) from None
        all_known([name] if name else [], graph.inputs, "--stream")
        for one in [name] if name else graph.inputs:
            found[one] = numbers
    return found


def _specs(
    given: Sequence[str | RegionSpec], devices: int, push: Collection[str], graph: Graph
) -> tuple[RegionSpec, ...]:
    """Errors  BuildError with everything that is wrong, with `push` too"""
    all_known(push, graph.inputs, "--push")
    specs = read_regions(given)
    found = []
    for spec in specs:
        if spec.device >= devices:
            what = f"'{spec.name}' is of device {spec.device}, there are {devices}"
            hint = "+device1 for the first of --device; the CPU's have no such word"
            found.append(Problem(OPTION, what, hint))
        if spec.weights and spec.device:
            what = f"weights cannot be copied to '{spec.name}', which is a device's"
            found.append(Problem(OPTION, what, "parameters can: --params"))
    if found:
        raise BuildError.of(found)
    return specs
