"""The way through: a model file, passes, kernels, plan, tables, C or machine code."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pybuild import __version__, passes
from pybuild.dtype import Array
from pybuild.emit.assemble import make_tables
from pybuild.emit.c import block_comment
from pybuild.emit.external import must_have_sources
from pybuild.emit.external import sources as external_sources
from pybuild.emit.header import header_file
from pybuild.emit.model_c import model_file, weights_file
from pybuild.emit.names import identifier, is_prefix
from pybuild.emit.selftest import selftest_file
from pybuild.emit.tables import Tables
from pybuild.errors import BuildError, Problem
from pybuild.graph import Graph, Node
from pybuild.kernels.candidate import Candidate
from pybuild.kernels.parameters import bound, with_values
from pybuild.kernels.table import candidates
from pybuild.package.names import names_file
from pybuild.package.report import Copy, Flash, Ram, Report, boundary, layers, promise
from pybuild.package.tree import tree_files, write_tree
from pybuild.plan.plan import Plan, make_plan
from pybuild.run.native import Net
from pybuild.run.weights import Weights, packed_image
from pybuild.targets.target import Target, target_named

ROUNDINGS = ("litert", "tflm", "single", "onnx")


@dataclass(frozen=True)
class Model:
    """A model as its file gives it; build() makes everything else.

    rounding  the default rule of its format
    digest    SHA-256 of the file
    """

    path: str
    graph: Graph
    rounding: str
    digest: str
    _lowered: dict[tuple[object, ...], Graph] = field(
        default_factory=dict, compare=False, repr=False
    )

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
            raise BuildError("--rounding", f"'{rule}' is not known", _one_of(ROUNDINGS))
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
        _all_known(names, constants, "--params")
        graph = replace(self.graph, parameters={n: n for n in sorted(names)})
        return replace(self, graph=graph, _lowered={})

    def problems(self) -> list[Problem]:
        """Everything that would stop a build, [] if nothing."""
        try:
            _offers(self.lower(), "generic")
        except BuildError as error:
            return list(error.problems)
        return []

    def build(
        self,
        out: str | Path | None = None,
        *,
        name: str | None = None,
        rounding: str | None = None,
        input: str = "reuse",
        target: str = "generic",
        optimise: str = "balanced",
        ram_limit: int | None = None,
        layout: Mapping[str, str] | None = None,
        params: str | Collection[str] | None = None,
        lazy: Collection[str] = (),
        names: str = "full",
        storage: str = "planned",
    ) -> Library:
        """Plans the model and, with `out`, writes the C tree there.

        params  "constant", "replaceable", or names of weights that users may load,
                share and replace; None: as the model says
        lazy    inputs that get no memory until they are bound
        names   "full", or "ids": no names in flash, tensors have numbers
        storage  "given": tensors share memory as a graph JSON file says, where it does
        Units   ram_limit: bytes of arena
        Errors  BuildError, LimitError; then nothing is written
        """
        _require(input, ("reuse", "keep"), "--input")
        _require(optimise, ("size", "balanced", "speed"), "--optimise")
        _require(names, ("full", "ids"), "--names")
        _require(storage, ("planned", "given"), "storage")
        prefix = _prefix(name, self.path)
        model = self.with_parameters(params)
        graph = replace(model.lower(rounding, layout, storage), name=prefix)
        offers = _offers(graph, target, optimise)
        _all_known(lazy, graph.inputs, "--lazy")
        plan = make_plan(
            graph, lambda node, _: offers[node.output], input == "keep", ram_limit, lazy
        )
        options = {
            "rounding": rounding, "input": input, "target": target, "lazy": lazy,
            "optimise": optimise, "layout": layout, "names": names, "storage": storage,
        }  # fmt: skip
        tables = replace(make_tables(plan, prefix), named=names == "full")
        library = Library(model, plan, tables, rounding or self.rounding, options)
        if out is not None:
            write_tree(Path(out), library.files())
        return library


@dataclass(frozen=True)
class Library:
    """A planned model: figures, C files, and instances on this machine."""

    model: Model
    plan: Plan
    tables: Tables
    rounding: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return self.tables.name

    @functools.cached_property
    def report(self) -> Report:
        """What the build costs and what its results are equal to."""
        graph, tables = self.plan.graph, self.tables
        rows = layers(graph)
        ram = Ram(tables.arena_bytes, tables.instance_bytes, self.plan.lower_bound)
        return Report(
            name=self.name,
            ram=ram,
            flash=Flash(tables.weight_bytes, tables.table_bytes),
            macs=sum(row.macs for row in rows),
            inputs=tuple(boundary(graph.tensor(n)) for n in graph.inputs),
            outputs=tuple(boundary(graph.tensor(n)) for n in graph.outputs),
            layers=rows,
            rounding=self.rounding,
            reference=promise(graph, self.rounding),
            copies=tuple(
                Copy(n.output, graph.tensor(n.output).bytes, n.op)
                for n in self.plan.copied
            ),
        )

    def sources(self) -> dict[str, str]:
        """NAME.h, NAME.c, NAME_weights.c, users' functions: file name -> text."""
        name, tables = self.name, self.tables
        own = {
            f"{name}.h": header_file(tables, self._banner(f"{name}.h")),
            f"{name}.c": model_file(tables, self._banner(f"{name}.c")),
            f"{name}_weights.c": weights_file(
                tables, self._banner(f"{name}_weights.c")
            ),
        }
        taken = (*own, f"{name}_selftest.c")
        return own | external_sources((func for func, _ in tables.kernels), taken)

    def files(self) -> dict[str, str]:
        """The whole tree: path -> text."""
        values = self._example()
        file = f"{self.name}_selftest.c"
        report = json.dumps(self.report.to_json(), indent=2, ensure_ascii=False)
        numbers = {} if self.tables.named else names_file(self.tables)
        return tree_files(
            self.tables,
            {
                **self.sources(),
                file: selftest_file(self.tables, values, self._banner(file)),
                "report.json": report + "\n",
                **numbers,
            },
        )

    def _example(self) -> Mapping[str, Array]:
        """Inputs and their outputs: by numpy, or by these kernels where it cannot."""
        from pybuild.ops.function import has_reference
        from pybuild.ops.interpret import interpret
        from pybuild.run.samples import example_inputs

        graph = self.plan.graph
        inputs = example_inputs(graph)
        if all(map(has_reference, graph.nodes)):
            return interpret(graph, inputs)
        net = self.host()
        for name, value in inputs.items():
            net.set_input(name, value)
        net.run()
        return {**inputs, **net.outputs()}

    def host(self, backend: str = "llvm") -> Net:
        """An instance on this machine, driven through crt.

        backend  "llvm" (no compiler needed) or "c" (the generated C, compiled)
        Errors   BuildError where "c" finds no compiler
        """
        net = self.instance(backend)
        if self.plan.slots:
            net.load_params(self.weights)
        return net

    def instance(self, backend: str = "llvm") -> Net:
        """As host(), with no parameter bound."""
        _require(backend, ("llvm", "c"), "--backend")
        must_have_sources(func for func, _ in self.tables.kernels)
        if backend == "llvm":
            from pybuild.run.jit import jit_net

            return jit_net(self.plan, self.tables)
        from pybuild.run.cc import compiled_net

        return compiled_net(self.plan, self.name, self.sources())

    @functools.cached_property
    def weights(self) -> Weights:
        """The parameters that the model came with, for any number of instances."""
        return Weights(self.image())

    def image(self, values: Mapping[str, Array] | None = None) -> bytes:
        """A parameter image, arranged as this library's kernels read it.

        values  new values of some of the user's parameters; others as the model has
        Errors  BuildError for an unknown name, another type or shape, or values that
                could overflow an accumulator
        """
        packed = self._packed(values or {})
        slots = self.plan.slots.values()
        return packed_image(slots, packed, named=self.tables.named)

    def _packed(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """The bytes of each slot, by its name."""
        kept = {slot.name: slot.value for slot in self.plan.slots.values()}
        plain = {slot.name for slot in self.plan.slots.values() if not slot.layout}
        if not values:
            return kept
        graph = self.model.graph
        _all_known(values, graph.parameters, "parameters")
        _must_fit(graph, values)
        if plain >= values.keys():
            return kept | dict(values)
        again = replace(self.model, graph=with_values(graph, values), _lowered={})
        made = again.build(name=self.name, **self.options)
        if [(s.node, s.candidate.func) for s in made.plan.steps] != [
            (s.node, s.candidate.func) for s in self.plan.steps
        ]:
            what = "these values would make another program"
            raise BuildError(graph.source, what, "build anew with them")
        return {slot.name: slot.value for slot in made.plan.slots.values()}

    def _banner(self, file: str) -> str:
        source = Path(self.model.path).name
        text = f"{file}: generated by pybuild {__version__} from {source}\n"
        text += f"(sha256 {self.model.digest[:16]}); regenerate, do not edit.\n"
        text += f"Rounding {self.rounding}: {promise(self.plan.graph, self.rounding)}."
        return "\n".join([*block_comment(text), ""])


def _offers(
    graph: Graph, target: str, optimise: str = "balanced"
) -> dict[str, list[Candidate]]:
    """Every node's kernels by its first output.

    Errors  BuildError with the problems of all nodes
    """
    offers: dict[str, list[Candidate]] = {}
    found: list[Problem] = []
    known = target_named(target)
    for node in graph.nodes:
        try:
            offers[node.output] = bound(
                node, graph, functools.partial(_kernels, node, known, optimise)
            )
        except BuildError as error:
            found += error.problems
    if found:
        raise BuildError.of(found)
    return offers


def _kernels(
    node: Node, target: Target, optimise: str, graph: Graph
) -> list[Candidate]:
    return candidates(node, graph, target, optimise)


def _require(value: str, known: tuple[str, ...], option: str) -> None:
    if value not in known:
        raise BuildError(option, f"'{value}' is not known", _one_of(known))


def _all_known(names: Iterable[str], known: Iterable[str], option: str) -> None:
    there = list(known)
    found = [
        Problem(option, f"there is no '{name}'", _one_of(tuple(there)))
        for name in names
        if name not in there
    ]
    if found:
        raise BuildError.of(found)


def _must_fit(graph: Graph, values: Mapping[str, Array]) -> None:
    found = []
    for name, value in values.items():
        tensor = graph.tensor(name)
        if value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
            what = f"is {tensor.dtype.value}{list(tensor.shape)}, "
            what += f"not {value.dtype.name}{list(value.shape)}"
            found.append(Problem(f"{graph.source}: parameter '{name}'", what))
    if found:
        raise BuildError.of(found)


def _one_of(known: tuple[str, ...]) -> str:
    return f"one of {', '.join(known)}"


def _prefix(name: str | None, path: str) -> str:
    """The prefix of all C names: the user's choice, or the file's name."""
    made = identifier(Path(path).stem if name is None else name)
    good = made if is_prefix(made) else f"my_{made}"
    if name is not None and name != good:
        what = f"'{name}' cannot be the name of C functions"
        raise BuildError("--name", what, f"for example '{good}'")
    return good
