"""Several models in one image: they share kernels, constants and, on request, memory.

Each model is built as by itself; here they are put together.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pybuild import __version__
from pybuild.ecosystems.packaged import Packaged
from pybuild.emit.c.constants import constants_file
from pybuild.emit.c.header import header_file
from pybuild.emit.c.image import (
    ImageTables,
    Wire,
    image_file,
    image_header,
    must_not_clash,
)
from pybuild.emit.c.model import kernels_file
from pybuild.emit.c.params import image_words
from pybuild.emit.content import Content, whole
from pybuild.emit.kernels import external
from pybuild.emit.kernels.c import block_comment
from pybuild.emit.tables.names import chosen_prefix
from pybuild.emit.tables.pool import Pool, defined, pooled
from pybuild.emit.tables.tables import Constant, Tables, TensorRow
from pybuild.entry import Buildable
from pybuild.errors import BuildError, LimitError, Problem
from pybuild.host.compiled_model import Compiled
from pybuild.host.devices import aligned
from pybuild.host.image_code import Code
from pybuild.host.native import Net
from pybuild.host.turn import new_turn
from pybuild.image_options import (
    check_groups,
    check_names,
    check_options,
    named_models,
    own_options,
)
from pybuild.ir.graph import Graph
from pybuild.library import Library
from pybuild.model import Model
from pybuild.options.many import ImageOptions
from pybuild.options.option import keywords, parse_options, plain
from pybuild.options.recipe import told_words
from pybuild.options.table import BuildOptions
from pybuild.package.folder import write_tree
from pybuild.package.grid import as_html
from pybuild.package.image_report import ImageReport, image_report
from pybuild.package.page import image_page
from pybuild.package.provenance import banner, provenance_of
from pybuild.package.tree import image_tree, program_of_image, with_report
from pybuild.params.image_join import joined
from pybuild.plan.connections import Connection, read_connections
from pybuild.plan.image_memory import Room, lay_pieces
from pybuild.records import dataclass


@dataclass(frozen=True, repr=False)
class Member(Library):
    """A model of an image; its figures are those that it has alone."""

    shared: Code | None = field(default=None, repr=False, compare=False)

    @property
    def _elsewhere(self) -> Constant | None:
        return None if self.shared is None else self.shared.pool.image_of(self.name)

    def in_c(self) -> dict[str, Content]:
        """NAME.h, NAME.c: file name -> text; the image has the rest."""
        made = super().in_c()
        del made[f"{self.name}_weights.c"]
        return made

    def _compiled(self, backend: str) -> Compiled:
        """The member's library, compiled with the code that all models of the image
        share."""
        if self.shared is None:
            return super()._compiled(backend)
        external.must_have_sources(func for func, _ in self.shared.pool.kernels)
        return self.shared.compiled(backend, self.name)

    def get_num_inputs(self) -> int:
        """The number of inputs that a user sets."""
        return len(self.tables.inputs)

    def get_num_outputs(self) -> int:
        return len(self.tables.outputs)

    def get_num_params(self) -> int:
        """The number of parameters that a user may replace."""
        return len(self.tables.parameters)

    def get_output_names(self) -> tuple[str, ...]:
        """The names of the outputs, in the order of their numbers."""
        return tuple(row.tensor.name for row in self.tables.outputs)


@dataclass(frozen=True, repr=False)
class Image(Packaged):
    """Models that are built together; image["kws"] is one of them."""

    members: Mapping[str, Member]
    pool: Pool
    tables: ImageTables
    options: BuildOptions = field(default_factory=BuildOptions, repr=False)
    how: ImageOptions = field(default_factory=ImageOptions, repr=False)

    @property
    def name(self) -> str:
        return self.tables.name

    def __repr__(self) -> str:
        ram, flash = self.report.ram, self.report.flash
        costs = f"RAM {ram.arena + ram.instance:,}"
        costs += f", flash {flash.weights + flash.tables:,} bytes"
        return f"Image({self.name!r}, {', '.join(self)}, {costs})"

    def to_html(self) -> str:
        """The HTML page of all models: what they share, and a part for each."""
        from pybuild.html.image_data import of_image
        from pybuild.html.page import IMAGE, page

        return page(self.name, of_image(self.report, self.members), IMAGE)

    def _repr_html_(self) -> str:
        return as_html(image_page(self.report))

    def __getitem__(self, name: str) -> Member:
        if name not in self.members:
            known = ", ".join(repr(n) for n in self.members)
            raise KeyError(f"model '{name}' is not known; there is {known}")
        return self.members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    @functools.cached_property
    def report(self) -> ImageReport:
        """The cost of the image, and of each model alone."""
        reports = tuple(member.report for member in self.members.values())
        made = {**provenance_of(None, self.options), **plain(keywords(self.how))}
        return replace(image_report(self.tables, self.pool, reports), provenance=made)

    @property
    def advised(self) -> ImageReport:
        """The report, with the options that would save RAM for each model alone."""
        return self.report

    def _banner(self, file: str) -> str:
        models = [member.model for member in self.members.values()]
        sources = {Path(model.path).name: model.digest for model in models}
        words = told_words(self.options) + told_words(self.how)
        return banner(file, sources, words)

    def sources(self) -> dict[str, str]:
        """All C files but the self-tests: file name -> text."""
        return whole(self.in_c())

    def in_c(self) -> dict[str, Content]:
        h, c, names = f"{self.name}.h", f"{self.name}.c", list(self)
        return _sources(self.pool, self.members.values()) | {
            h: image_header(self.tables, self._banner(h)),
            c: image_file(self.tables, _banner(c, names)),
        }

    def generated(self) -> dict[str, Content]:
        """The files of the tree that depend on these models: file name -> content."""
        made = self.in_c()
        for member in self.members.values():
            made |= member.generated()
        return made

    def files(self) -> dict[str, Content]:
        """The whole tree: path -> content."""
        tree = image_tree(self.name, self.pool.models, self._used(), self.generated())
        return with_report(tree, self.report.to_json())

    def _used(self) -> list[str]:
        """The regions that are arguments of IMAGE_init."""
        return [self.tables.pieces[i].name for i in self.tables.used]

    def program(self) -> tuple[dict[str, str], tuple[Tables, ...]]:
        models = tuple(self.pool.models)
        return program_of_image(self.name, models, self._used()), models

    def host(self, backend: str = "llvm") -> dict[str, Net]:
        """An instance of each model, connected, in memory as in C."""
        nets = {name: member.host(backend) for name, member in self.members.items()}
        turns = [new_turn() for _ in self.tables.exclusive]
        memory = {p.name: aligned(p.together.bytes) for p in self.tables.pieces}
        for name, net in nets.items():
            turn = self.tables.turn_of(name)
            regions = []
            for row in self.members[name].tables.regions:
                at = self.tables.at(name, row.name)
                regions.append(memory[row.name][at : at + max(row.bytes, 1)])
            net.use_memory(regions, None if turn is None else turns[turn])
        for wire in self.tables.wires:
            tensor = wire.output.tensor
            region, at = self.tables.buffer(wire)
            whole = memory[self.tables.pieces[region].name]
            buffer = whole[at : at + tensor.bytes].view(tensor.dtype.numpy)
            shaped = buffer.reshape(tensor.shape)
            nets[wire.source.name].bind_output(tensor.name, shaped)
            nets[wire.target.name].bind_input(wire.input.tensor.name, shaped)
        return nets


def build_image(
    models: Mapping[str, Buildable] | Sequence[Buildable],
    out: str | Path | None = None,
    *,
    name: str | None = None,
    exclusive: str | Sequence[str | Sequence[str]] = (),
    connect: str | Sequence[str] = (),
    ram_limit: int | str | None = None,
    force: bool = False,
    **options: Any,
) -> Image:
    """Plans several models and, with `out`, writes one C tree for all of them.

    models     what pybuild.build takes, by the names that they get; else they are
               named by their files
    name       of the image; default: the models' names, joined
    exclusive  groups of models that never run together: they share their memory
    connect    "a.scores=b.features": an output that is another model's input
    force      write to a folder with other files than an earlier build of this name
    options    as Model.build, for every model; names of tensors for the models that
               have them
    Units      ram_limit: bytes of the image's arena, of all its regions
    Errors     BuildError, LimitError; then nothing is written
    """
    named = named_models(models)
    title = chosen_prefix(name or "_".join(named), "")
    asked, wrong = parse_options(BuildOptions, {**options, "ram_limit": ram_limit})
    given = {"exclusive": exclusive, "connect": connect}
    how, more = parse_options(ImageOptions, given)
    check_options(asked, wrong + more)
    if title in named:
        what = f"'{title}' is a model's name too"
        raise BuildError("--name", what, "choose another name for the image")
    check_groups(how.exclusive, named)
    check_names(named.values(), asked)
    graphs = _graphs(named, asked)
    wires = read_connections(how.connect, graphs)
    room = Room(asked.regions, how.exclusive)
    built = {}
    for n, model in named.items():
        own = own_options(model, asked)
        chosen = graphs[n].lazy if own.lazy is None else own.lazy
        lazy = tuple(dict.fromkeys([*chosen, *_bound(n, wires)]))
        own = replace(own, lazy=lazy, regions=room.left(n))
        built[n] = model.build(name=n, **keywords(own))
        room.take(n, {row.name: row.bytes for row in built[n].tables.regions})
    _must_not_forget(how.exclusive, built)
    image = replace(_image(title, built, room, wires), options=asked, how=how)
    if isinstance(asked.ram_limit, int) and image.tables.arena_bytes > asked.ram_limit:
        raise _too_large(image, asked.ram_limit)
    if out is not None:
        write_tree(Path(out), image.files(), image.name, force)
    return image


def _graphs(models: Mapping[str, Model], asked: BuildOptions) -> dict[str, Graph]:
    """The graphs as they are built.

    Errors  BuildError with the problems of all models
    """
    graphs: dict[str, Graph] = {}
    found: list[Problem] = []
    for name, model in models.items():
        try:
            own = own_options(model, asked)
            graphs[name] = model.lower(own.rounding, own.layout)
        except BuildError as error:
            found += error.problems
    if found:
        raise BuildError.of(found)
    return graphs


def _must_not_forget(
    groups: Sequence[Sequence[str]], built: Mapping[str, Library]
) -> None:
    """Checks that no model of an exclusive group has state, or raises BuildError."""
    found = [
        Problem(
            "--exclusive",
            f"'{name}' keeps state from run to run, the others would overwrite it",
            "leave it out of the group",
        )
        for group in groups
        for name in group
        if built[name].tables.kept
    ]
    if found:
        raise BuildError.of(found)


def _bound(name: str, wires: Sequence[Connection]) -> list[str]:
    """The tensors of a model that lie in the memory of a connection."""
    found = [w.output for w in wires if w.source == name]
    found += [w.input for w in wires if w.target == name]
    return list(dict.fromkeys(found))


def _image(
    name: str,
    built: Mapping[str, Library],
    room: Room,
    wires: Sequence[Connection],
) -> Image:
    texts = [header_file(library.tables, "") for library in built.values()]
    taken = defined(name, texts)
    whole_of = joined(
        {one.name: one.image() for one in built.values() if one.tables.parameters}
    )
    sizes_of = {n: len(image) for n, image in whole_of.items()}
    own = [
        replace(one.tables, joined_bytes=sizes_of.get(one.name, 0))
        for one in built.values()
    ]
    images = {n: image_words(image) for n, image in whole_of.items()}
    pool = pooled(name, own, taken, images)
    models = {tables.name: tables for tables in pool.models}
    members: dict[str, Member] = {}
    code = Code(pool, lambda: whole(_sources(pool, members.values())))
    for title, made in built.items():
        parts = (made.model, made.plan, models[title], made.rounding, made.options)
        members[title] = Member(*parts, planner=made.planner, shared=code)
    rows, sizes = _wires(wires, models)
    pieces = lay_pieces(room.sizes, room.specs, room.exclusive, sizes)
    if pieces is None:
        what = f"the buffers of the connections, {sum(sizes)} bytes, fit in no region"
        raise LimitError(name, what, "a larger region, or one more")
    exclusive = tuple(map(tuple, room.exclusive))
    tables = ImageTables(name, pool.models, pieces, exclusive, rows)
    image = Image(members, pool, tables)
    must_not_clash(tables)
    return image


def _wires(
    wires: Sequence[Connection], models: Mapping[str, Tables]
) -> tuple[tuple[Wire, ...], list[int]]:
    """The connections, and the bytes of their buffers: one for each output."""
    buffers: dict[tuple[str, str], int] = {}
    sizes: list[int] = []
    rows = []
    for wire in wires:
        output = _row(models[wire.source].outputs, wire.output)
        index = buffers.setdefault((wire.source, wire.output), len(buffers))
        if index == len(sizes):
            sizes.append(output.tensor.bytes)
        target = models[wire.target]
        given = _row(target.inputs, wire.input)
        rows.append(Wire(models[wire.source], output, target, given, index))
    return tuple(rows), sizes


def _row(rows: Sequence[TensorRow], name: str) -> TensorRow:
    return next(row for row in rows if row.tensor.name == name)


def _sources(pool: Pool, members: Collection[Member]) -> dict[str, Content]:
    """The C files of all models and of what they share."""
    made: dict[str, Content] = {}
    for member in members:
        made |= member.in_c()
    names = [member.name for member in members]
    kernels, weights = f"{pool.name}_kernels.c", f"{pool.name}_weights.c"
    made[kernels] = kernels_file(pool.kernels, _banner(kernels, names))
    constants = (*pool.constants, *pool.images)
    made[weights] = constants_file(constants, _banner(weights, names))
    return made | external.sources((func for func, _ in pool.kernels), made)


def _banner(file: str, models: Sequence[str]) -> str:
    text = f"{file}: generated by pybuild {__version__} for {', '.join(models)};\n"
    return "\n".join([*block_comment(f"{text}regenerate, do not edit."), ""])


def _too_large(image: Image, limit: int) -> LimitError:
    arenas = ", ".join(f"'{m.name}' {m.arena_bytes}" for m in image.pool.models)
    what = f"the arena has {image.tables.arena_bytes} bytes, the limit is "
    what += f"{limit}; by model: {arenas} bytes"
    return LimitError(
        image.name, what, "--exclusive, for models that never run at once"
    )
