"""Prints IMAGE.h and IMAGE.c: one instance of every model of an image, their memory,
and what wires them. Over the functions of the models' own headers.
"""

from __future__ import annotations

from pybuild.emit.c.braces import braced
from pybuild.emit.c.header import header_file
from pybuild.emit.c.regions import from_array, initialiser, size_macro
from pybuild.emit.kernels.c import block_comment, fold
from pybuild.emit.tables.pool import defined
from pybuild.emit.tables.tables import Tables, TensorRow
from pybuild.errors import BuildError, Problem
from pybuild.plan.image_memory import Piece
from pybuild.plan.regions.regions import ARENA_NAME
from pybuild.records import dataclass


@dataclass(frozen=True)
class Wire:
    """An output that is the input of another model; buffer: index of its memory."""

    source: Tables
    output: TensorRow
    target: Tables
    input: TensorRow
    buffer: int

    @property
    def function(self) -> str:
        ends = f"{self.source.name}_{self.output.symbol}"
        return f"connect_{ends}_to_{self.target.name}_{self.input.symbol}"

    def __str__(self) -> str:
        source = f"{self.source.name}.{self.output.tensor.name}"
        return f"{source}={self.target.name}.{self.input.tensor.name}"


@dataclass(frozen=True)
class ImageTables:
    """pieces: the regions of its memory; exclusive: groups of models that lie on top
    of each other.
    """

    name: str
    models: tuple[Tables, ...]
    pieces: tuple[Piece, ...]
    exclusive: tuple[tuple[str, ...], ...]
    wires: tuple[Wire, ...]

    @property
    def arena_bytes(self) -> int:
        """The bytes of all regions."""
        return sum(piece.together.bytes for piece in self.pieces)

    @property
    def used(self) -> tuple[int, ...]:
        """The regions that something lies in; at least one."""
        found = [i for i, p in enumerate(self.pieces) if p.together.bytes]
        return tuple(found or [0])

    def at(self, model: str, region: str) -> int:
        """The offset of a model's own region in the image's region of that name."""
        return next(p for p in self.pieces if p.name == region).together.at[model]

    def at_macro(self, model: str, region: str) -> str:
        """The same offset as a C macro."""
        part = "" if self.pieces[0].spec is None else f"_{region.upper()}"
        return f"{self.name.upper()}_{model.upper()}{part}_AT"

    def buffer(self, wire: Wire) -> tuple[int, int]:
        """The region and offset of a connection's memory."""
        for index, piece in enumerate(self.pieces):
            if piece.together.buffers:
                return index, piece.together.buffers[wire.buffer]
        raise AssertionError(wire)

    def turn_of(self, model: str) -> int | None:
        """The index of the group that the model takes turns with."""
        for index, group in enumerate(self.exclusive):
            if model in group:
                return index
        return None


def image_header(image: ImageTables, banner: str) -> str:
    """IMAGE.h: what firmware includes to have all models."""
    name, upper = image.name, image.name.upper()
    lines = [banner.rstrip(), f"#ifndef {upper}_H", f"#define {upper}_H", ""]
    lines += [f'#include "{m.name}.h"' for m in image.models]
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += _memory(image)
    lines += ["/* One instance of each model. */", f"struct {name} {{"]
    lines += [f"    struct {m.name} {m.name};" for m in image.models]
    if image.exclusive:
        lines.append(f"    struct crt_turn turns[{len(image.exclusive)}];")
    lines += ["};", "", *_told(image)]
    lines += [*fold(f"{_init(name)};"), ""]
    for wire in image.wires:
        lines += [*_explained(wire), *_head(wire, name, ";"), ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def image_file(image: ImageTables, banner: str) -> str:
    """IMAGE.c."""
    name = image.name
    lines = [banner, f'#include "{name}.h"', ""]
    for wire in image.wires:
        lines += [*_head(wire, name, ""), *_connecting(wire)]
    lines += [*fold(_init(name)), "{", *_checked(image)]
    for index in range(len(image.exclusive)):
        lines.append(f"    (void)crt_turn_init(&m->turns[{index}]);")
    for model in image.models:
        lines += _starting(model, image)
    for wire in image.wires:
        region, at = image.buffer(wire)
        kind = wire.output.tensor.dtype.c
        call = f"{name}_{wire.function}(&m->{wire.source.name},"
        there = f"at[{image.used.index(region)}] + {at}u"
        lines += [
            "    if (error == CRT_OK)",
            f"        error = {call}",
            f"            &m->{wire.target.name}, ({kind} *)(void *)({there}));",
        ]
    return "\n".join(braced([*lines, "    return error;", "}", ""]))


def _checked(image: ImageTables) -> list[str]:
    """The start addresses of the regions, after checks that they exist and are large
    enough."""
    names = [image.pieces[i].name for i in image.used]
    lines = [f"    uint8_t *at[{len(names)}];", "    int error = CRT_OK;", ""]
    lines += ["    if (m == NULL || memory == NULL)", "        return CRT_ERR_NULL;"]
    for index, name in enumerate(names):
        lines += [
            f"    if (memory->{name}.ptr == NULL)",
            "        return CRT_ERR_NULL;",
            f"    if (memory->{name}.bytes < {_size(image, name)})",
            "        return CRT_ERR_REGION;",
            f"    at[{index}] = (uint8_t *)memory->{name}.ptr;",
        ]
    return lines


def _size(image: ImageTables, region: str) -> str:
    return f"{image.name.upper()}_{region.upper()}_BYTES"


def _memory(image: ImageTables) -> list[str]:
    name, upper = image.name, image.name.upper()
    text = "Working memory of all models: caller-owned, aligned as below."
    for group in image.exclusive:
        text += f"\n{', '.join(group)}: in one place, as they never run together."
    align = max(m.region_align for m in image.models)
    lines = block_comment(text)
    for index, piece in enumerate(image.pieces):
        note = "" if index in image.used else " /* it is given no such memory */"
        size = piece.together.bytes
        lines.append(f"#define {_size(image, piece.name)} {size}u{note}")
    lines += [
        f"#define {upper}_ARENA_ALIGN {align}u",
        "",
        "/* Where in it the memory of each model begins, in bytes. */",
    ]
    for model in image.models:
        for row in model.regions:
            at = image.at(model.name, row.name)
            lines.append(f"#define {image.at_macro(model.name, row.name)} {at}u")
    names = [image.pieces[i].name for i in image.used]
    lines += [
        "",
        f"/* The memory that a struct {name} lives in. */",
        f"struct {name}_memory {{",
        *(f"    struct crt_region {region};" for region in names),
        "};",
        "",
    ]
    if names == [ARENA_NAME]:
        return [
            *lines,
            *from_array(name),
            "",
        ]
    return [*lines, *initialiser(name, names), ""]


def _told(image: ImageTables) -> list[str]:
    lines = ["/* Prepares an instance of every model, each in its part of the arena."]
    if image.exclusive:
        lines += [
            " * Models in one place take turns: whichever is given an input or runs",
            " * takes it over, and the others' inputs and results are lost; one that",
            " * starts while another is in the middle of a run gets CRT_ERR_BUSY, or",
            " * waits, by a function that is set in `turns` after this (crt/graph.h).",
        ]
    if image.wires:
        lines += [
            " * A connected output and input have one buffer, where no model lies:",
            " * what is in it stays until its source runs again. Run the source first.",
        ]
    return [
        *lines,
        " *",
        " * Owner   memory stays the caller's and must outlive m",
        " * Errors  CRT_ERR_NULL, CRT_ERR_REGION (too small), CRT_ERR_ALIGN */",
    ]


def _explained(wire: Wire) -> list[str]:
    source, target = wire.source.name, wire.target.name
    size = f"{source.upper()}_{wire.output.symbol.upper()}_LEN"
    return [
        *block_comment(
            f"Makes output '{wire.output.tensor.name}' of {source} and input "
            f"'{wire.input.tensor.name}' of {target} one buffer, of {size} elements. "
            "For instances of your own; NULL for either leaves that end as it is.\n\n"
            "Owner   buffer is the caller's and must outlive both"
        )
    ]


def _init(name: str) -> str:
    return f"int {name}_init(struct {name} *m, const struct {name}_memory *memory)"


def _head(wire: Wire, name: str, end: str) -> list[str]:
    source, target = wire.source.name, wire.target.name
    kind = wire.output.tensor.dtype.c
    return [
        f"int {name}_{wire.function}(",
        f"    struct {source} *source, struct {target} *target, {kind} *buffer){end}",
    ]


def _connecting(wire: Wire) -> list[str]:
    source = f"{wire.source.name}_bind_{wire.output.symbol}"
    target = f"{wire.target.name}_bind_{wire.input.symbol}"
    return [
        "{",
        "    int error = CRT_OK;",
        "",
        "    if (buffer == NULL)",
        "        return CRT_ERR_NULL;",
        "    if (source != NULL)",
        f"        error = {source}(source, buffer);",
        "    if (error == CRT_OK && target != NULL)",
        f"        error = {target}(target, buffer);",
        "    return error;",
        "}",
        "",
    ]


def _starting(model: Tables, image: ImageTables) -> list[str]:
    name = model.name
    names = [image.pieces[i].name for i in image.used]
    init = [
        "    if (error == CRT_OK) {",
        f"        const struct {name}_memory part = {{",
    ]
    for row in model.regions:
        at = names.index(row.name) if row.name in names else 0
        macro = image.at_macro(name, row.name)
        init += [
            f"            {{at[{at}] + {macro},",
            f"             {size_macro(model, row)}}},",
        ]
    init += [
        "        };",
        "",
        f"        error = {name}_init(&m->{name}, &part);",
        "    }",
    ]
    turn = image.turn_of(name)
    if turn is None:
        return init
    return [
        *init,
        "    if (error == CRT_OK)",
        f"        error = crt_graph_share_storage(&m->{name}.graph,",
        f"            &m->turns[{turn}]);",
    ]


def must_not_clash(tables: ImageTables) -> None:
    """Checks that no two headers define the same name.

    Errors  BuildError where two headers define one name
    """
    texts = {m.name: header_file(m, "") for m in tables.models}
    texts[tables.name] = image_header(tables, "")
    found = []
    names = list(texts)
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            own = defined(one, [texts[one]]) & defined(other, [texts[other]])
            for symbol in sorted(own):
                what = f"models '{one}' and '{other}' both define {symbol}"
                found.append(Problem("--name", what, "another name for one of them"))
                break
    if found:
        raise BuildError.of(found)
