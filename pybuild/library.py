"""A planned model: figures, C files, parameters, and instances on this machine. What
prints files is imported where files are printed: `crt inspect` prints none."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybuild.cores.core_plan import Spread
from pybuild.dtype import Array
from pybuild.ecosystems.packaged import Packaged
from pybuild.emit.content import Content, pieces, whole
from pybuild.emit.tables.tables import Constant, Tables
from pybuild.errors import BuildError, Problem, all_known
from pybuild.executor.factory import Factory, backend_of, described
from pybuild.host.compiled_model import Compiled, SlotFacts, slot_facts
from pybuild.ir.graph import Graph, signature
from pybuild.options.option import keywords, plain
from pybuild.options.table import BuildOptions
from pybuild.package.grid import as_html
from pybuild.package.library_report import made_report
from pybuild.package.names import names_file
from pybuild.package.page import report_page
from pybuild.package.provenance import Origin, banner
from pybuild.package.report import Report, promise
from pybuild.package.tree import program_of_model, tree_files, with_report
from pybuild.params.codecs import CODECS, LZ4, Codec
from pybuild.params.image_read import read_image
from pybuild.plan.choice import arena_sizes, search_of
from pybuild.plan.make import placed
from pybuild.plan.plan import Plan
from pybuild.plan.request import Planner, Planners
from pybuild.plan.row_input import fed_search
from pybuild.plan.schedule.lower_bound import least_ram
from pybuild.plan.schedule.stages import Search
from pybuild.progress import Progress, silent
from pybuild.records import dataclass
from pybuild.savings import Advised
from pybuild.select.devices import by_name, offers, processor_of, table_of
from pybuild.select.parameters import with_values
from pybuild.targets.llvm import Llvm
from pybuild.targets.target import Target

if TYPE_CHECKING:
    from pybuild.html.samples import SampleFacts


@dataclass(frozen=True, repr=False)
class Library(Factory, Packaged, Advised):
    """A planned model: figures, files, and instances on this machine.

    backend   of instances that ask for none
    mod_name  what makes modules: library["default"](device)
    bound     whether modules begin with the model's weights
    planner   what made the plan; planners: of others; spread: over several cores
    """

    model: Origin
    plan: Plan
    tables: Tables
    rounding: str
    options: BuildOptions = field(repr=False)
    backend: str = "llvm"
    mod_name: str = "default"
    bound: bool = True
    planner: Planner | None = field(default=None, repr=False, compare=False)
    planners: Planners | None = field(default=None, repr=False, compare=False)
    spread: Spread | None = field(default=None, repr=False, compare=False)
    _code: dict[str, Compiled] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        t, graph = self.tables, self.plan.graph
        ends = map(graph.tensor, graph.inputs), map(graph.tensor, graph.outputs)
        flash = t.weight_bytes + t.image_bytes + t.table_bytes
        costs = f"RAM {t.arena_bytes + t.instance_bytes:,}, flash {flash:,} bytes"
        return f"{type(self).__name__}({t.name!r}, {signature(*ends)}, {costs})"

    def to_html(
        self, data: Any = None, labels: Any = None, samples: SampleFacts | None = None
    ) -> str:
        """The report as one HTML page, which needs nothing else: docs/report.md.

        data, labels  samples, as pybuild.check takes them: accuracy, error by layer
        samples       what sample_facts() has found of them
        Errors        BuildError for samples that do not fit
        """
        from pybuild.html.data import of_library
        from pybuild.html.page import page

        found = samples or self.sample_facts(data, labels)
        return page(self.name, of_library(self, samples=found))

    def sample_facts(
        self, data: Any, labels: Any = None, progress: Progress = silent
    ) -> SampleFacts | None:
        """The page's facts about samples; None without samples."""
        from pybuild.verify.own_samples import file_and_reference, given_samples

        own = given_samples(self, data, labels)
        if own is None:
            return None
        from pybuild.verify.over_samples import over_samples  # with all of onnx

        path, ref = file_and_reference(self.model)
        return over_samples(path, self, own, ref, progress)

    def _repr_html_(self) -> str:
        from pybuild.html.data import of_report
        from pybuild.html.page import framed, page

        shown = page(self.name, of_report(self.advised.to_json()))
        return framed(shown) + as_html(report_page(self.advised))

    @property
    def name(self) -> str:
        return self.tables.name

    @property
    def graph(self) -> Graph:
        return self.model.graph

    @property
    def slots(self) -> tuple[SlotFacts, ...]:
        there = ((s.name, s.layout, s.sources) for s in self.plan.slots.values())
        return slot_facts(there, self.tables.named)

    def planned(self) -> Plan:
        return self.plan

    def facts(self) -> dict[str, Any]:
        """The facts that an exported library holds; or raises BuildError."""
        by_name(self.options.target)
        options = plain(keywords(self.options))
        del options["params"]  # the graph says which
        return {
            "name": self.name, "backend": self.backend,
            "options": options,
            "rounding": self.rounding, "parameters": described(self.parameters),
            "slots": [[s.name, s.layout, list(s.sources)] for s in self.slots],
        }  # fmt: skip

    @property
    def processor(self) -> Llvm | None:
        """The processor that an object is for; None: the build is C."""
        chosen = self.options
        return processor_of(chosen.target) if chosen.emit == "obj" else None

    @property
    def targets(self) -> tuple[Target, ...]:
        """The target of each device, the CPU's first."""
        return table_of(self.options.target)

    @functools.cached_property
    def report(self) -> Report:
        """The cost of the build, and the reference that its results equal."""
        made = made_report(
            self.model, self.plan, self.tables, self.rounding, self.options,
            self.kernels, self.image, self.spread,
        )  # fmt: skip
        if self.processor is None:
            return made
        from pybuild.boards.firmware.object_stack import object_stack

        code = next(pieces(self.compiled()[f"{self.name}.o"]))  # then large constants
        return replace(made, stack=object_stack(bytes(code), self.processor.arch))

    def of_window(self) -> Graph:
        """The final graph of the same build without --stream, for the whole window."""
        return self.again(stream=(), ram_limit=None).plan.graph

    def again(self, **changed: Any) -> Library:
        """The same build with some options changed."""
        options = {**keywords(self.options), **changed}
        made: Library = self.model.build(name=self.name, **options)
        return made

    def ram_bound(self) -> int:
        """The lower bound of RAM for any plan by rows, instance included."""
        search, pushed = self._search(), self.plan.pushed
        search = fed_search(search, pushed) if pushed else search
        least = least_ram(
            search.graph, search.nodes, search.views, search.lazy, search.spent
        )
        return least + self.tables.instance_bytes

    def arena_sizes(self) -> list[int]:
        return arena_sizes(self._search(), placed)

    def _search(self) -> Search:
        """The search space by rows, for inputs that are held whole."""
        kernels = offers(self.plan.graph, self.targets, self.options.optimise)
        return search_of(self.plan, kernels, self.options.input)

    def sources(self) -> dict[str, str]:
        """The text of each file: NAME.h, NAME.c, weights, parameters, functions."""
        return whole(self.in_c())

    @property
    def _elsewhere(self) -> Constant | None:
        """The parameter image, if the model shares it with others."""
        return None

    def in_c(self) -> dict[str, Content]:
        """The same as sources(), with weights not yet printed."""
        from pybuild.emit.c.files import c_files

        image = self.image() if self.tables.parameters else None
        return c_files(self.tables, self._banner, image, self._elsewhere)

    def compiled(self) -> dict[str, Content]:
        """NAME.h, NAME.o, its functions, parameters, users' functions.

        Errors  BuildError for a target that no object is made for
        """
        return dict(self._compiled_files)

    @functools.cached_property
    def _compiled_files(self) -> dict[str, Content]:
        from pybuild.emit.c.files import object_files

        image = self.image() if self.tables.parameters else None
        how = processor_of(self.options.target), self.options.optimise
        return object_files(self.tables, self._banner, image, *how)

    def shipped(self) -> Mapping[str, Content]:
        return self.compiled() if self.processor else self.in_c()

    def retargeted(self, target: str) -> Library:
        """The same build for another target; or raises BuildError."""
        if isinstance(self.options.target, Mapping):
            what = "was built for several devices"
            raise BuildError(self.name, what, "build it for one processor")
        if self.options.target == target:
            return self
        made = self.again(target=target, ram_limit=None)
        return replace(made, mod_name=self.mod_name, bound=self.bound)

    def files(self) -> dict[str, Content]:
        """The whole tree: path -> content."""
        made = tree_files(self.tables, self.generated(), self.options.target)
        return with_report(made, self.advised.to_json())

    def program(self) -> tuple[dict[str, str], tuple[Tables, ...]]:
        return program_of_model(self.tables), (self.tables,)

    def generated(self) -> dict[str, Content]:
        """The files of the tree that depend on this model: file name -> content."""
        from pybuild.ecosystems.tvm import other_names
        from pybuild.emit.c.selftest import selftest_file

        file = f"{self.name}_selftest.c"
        test = selftest_file(self.tables, self._example(), self._banner(file))
        numbers = {} if self.tables.named else names_file(self.tables)
        return {**self.shipped(), file: test, **numbers, **other_names(self)}

    def _example(self) -> Mapping[str, Array]:
        """Example inputs and their outputs: by numpy, or by these kernels if numpy
        cannot."""
        from pybuild.host.lazy_buffers import bind_lazy
        from pybuild.ops.base.function import has_reference
        from pybuild.ops.interpret import interpret
        from pybuild.verify.samples import example_inputs

        graph = self.plan.graph
        inputs = example_inputs(graph)
        if all(map(has_reference, graph.nodes)):
            return interpret(graph, inputs)
        net = bind_lazy(self.host())
        for name, value in inputs.items():
            net.bind_input(name, value)
        net.go()
        return {**inputs, **net.outputs()}

    def code(self, backend: str | None = None) -> Compiled:
        from pybuild.emit.kernels.external import must_have_sources

        chosen = backend_of(backend, self.backend)
        must_have_sources(func for func, _ in self.tables.kernels)
        if chosen not in self._code:
            self._code[chosen] = self._compiled(chosen)
        return self._code[chosen]

    def _compiled(self, backend: str) -> Compiled:
        if backend == "llvm":
            from pybuild.host.jit import jit

            return jit(self.tables)
        from pybuild.host.cc import c_code

        return c_code(self.name, self.sources())

    def portable(self) -> bytes:
        if self.backend == "llvm":
            from pybuild.emit.kernels.external import must_be_ours
            from pybuild.emit.llvm.model import module
            from pybuild.host.jit import bitcode

            must_be_ours(func for func, _ in self.tables.kernels)
            return bitcode(functools.partial(module, self.tables))
        from pybuild.host.cc import shared_library

        files = self.sources()
        files.pop(f"{self.name}_params.c", None)  # they are beside it
        return shared_library(self.name, files)

    def image(
        self, values: Mapping[str, Array] | None = None, codec: Codec | None = None
    ) -> bytes:
        """A parameter image, arranged as this library's kernels read it.

        values  new values of some of the user's parameters; others as the model has
        codec   tried on each payload; None: what the build's --compress says
        Errors  BuildError for an unknown name, another type or shape, or values that
                could overflow an accumulator
        """
        from pybuild.host.parameter_image import packed_image

        if codec is None and self.options.compress == "lz4":
            codec = CODECS[LZ4]
        slots = self.plan.slots.values()
        packed = self._packed(values or {})
        return packed_image(slots, packed, codec, self.tables.named)

    def _packed(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """The bytes of each slot, by its name."""
        slots = self.plan.slots.values()
        if not values:
            return {slot.name: slot.value for slot in slots}
        plain = {name for slot in slots if not slot.layout for name in slot.sources}
        plain -= {name for slot in slots if slot.layout for name in slot.sources}
        graph = self.model.graph
        all_known(values, graph.parameters, "parameters")
        _must_fit(graph, values)
        if plain >= values.keys():
            return {s.name: values.get("".join(s.sources), s.value) for s in slots}
        model = self.model.with_graph(with_values(graph, values))
        made = replace(self, model=model).again()
        if [(s.node, s.candidate.func) for s in made.plan.steps] != [
            (s.node, s.candidate.func) for s in self.plan.steps
        ]:
            what = "these values would make another program"
            raise BuildError(graph.source, what, "build anew with them")
        return {slot.name: slot.value for slot in made.plan.slots.values()}

    def _banner(self, file: str) -> str:
        model, rule = self.model, self.rounding
        how = model.recipe.words(self.options) if file == f"{self.name}.h" else None
        end = f"Rounding {rule}: {promise(self.plan.graph, rule)}."
        return banner(file, {Path(model.path).name: model.digest}, how, end)


def with_image(tables: Tables, image: bytes) -> Tables:
    """The tables with the sizes of their parameters."""
    entries = read_image(image, tables.name).entries
    sizes = [-(-e.bytes // 16) * 16 for e in entries if e.codec]
    return replace(tables, image_bytes=len(image), unpacked_bytes=sum(sizes))


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
