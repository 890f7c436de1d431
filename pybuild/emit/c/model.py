"""Prints a model's tables, weights and kernels as C99: NAME.c and NAME_weights.c.

The twin of model_llvm.py: the same symbols, the same structs of crt/abi.h.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.dtype import DType
from pybuild.emit.c.braces import braced
from pybuild.emit.c.constants import declaration
from pybuild.emit.c.cores import cores_definitions, slice_tables
from pybuild.emit.c.regions import init_definition, size_macro
from pybuild.emit.c.row_input import push_definitions, run_body
from pybuild.emit.c.samples import forgotten, sample_definitions
from pybuild.emit.c.state import state_definitions, state_tables
from pybuild.emit.c.stateless import definition
from pybuild.emit.c.sums import name_arrays, sum_tables, verify_definition
from pybuild.emit.c.tables import lists, table
from pybuild.emit.kernels.c import (
    block_comment,
    expression,
    field_comment,
    fold,
    function,
    inline_function,
)
from pybuild.emit.kernels.external import c_function
from pybuild.emit.kernels.misra import tag
from pybuild.emit.llvm.model import quantisation
from pybuild.emit.tables.comments import kernel_fields, memory_lines
from pybuild.emit.tables.sums import name_symbols
from pybuild.emit.tables.tables import (
    CONSUMED,
    CONVERTED,
    LAZY,
    PUSHED,
    UNPACK_HEADERS,
    Kernels,
    Tables,
    TensorRow,
    User,
)
from pybuild.ir.loop import Func, Intrin, const
from pybuild.ir.loop_verify import has_halves, has_vectors, has_words, intrins
from pybuild.kernels.base import (
    between,
    extremes,
    floats,
    pairs,
    reals,
    vector_eights,
    vector_packs,
    wide_vectors,
)
from pybuild.kernels.base.external import External
from pybuild.kernels.base.vector_rounds import HEADER, NAMES


def model_file(tables: Tables, banner: str) -> str:
    """NAME.c: kernels, step tables, and the functions of the header."""
    name = tables.name
    parts = [banner, f'#include "{name}.h"', '#include "crt/intrin.h"']
    parts += ['#include "crt/convert.h"'] if tables.converts else []
    parts += ['#include "crt/lockstep.h"'] if tables.links else []
    parts += _vectors(tables.kernels)
    if tables.unpack:
        parts.append(f'#include "crt/{UNPACK_HEADERS[tables.unpack]}.h"')
    parts += _little(tables.kernels, tables.packed_words)
    parts += [""]
    parts += ["/* what the layers' constants are: see the weights file */"]
    parts += [
        line for c in tables.constants for line in fold(f"extern {declaration(c)};")
    ]
    own = {func.name for func, _ in tables.kernels}
    others = sorted({s.kernel for s in tables.steps} - own - {""})
    parts += [f"extern crt_kernel {kernel};" for kernel in others]
    parts += ["", *kernels(tables.kernels, "static ")]
    if tables.memory:
        parts += [*block_comment("\n".join(memory_lines(tables))), ""]
    printed = [*lists(tables), *slice_tables(tables), *_model(tables)]
    parts += [*printed, *sum_tables(tables, "\n".join(printed)), *functions(tables)]
    return "\n".join(parts).rstrip() + "\n"


def _kernel(func: Func, users: Sequence[User], linkage: str) -> str:
    if isinstance(func, External):
        return c_function(func, users, linkage)
    fields = kernel_fields(func, users)
    fields += [("MISRA", rules)] if (rules := tag(func)) else []
    return function(func, field_comment(fields), linkage)


def functions_file(tables: Tables, banner: str) -> str:
    """NAME_functions.c: what an object, which holds the rest, leaves to C."""
    return "\n".join([banner, f'#include "{tables.name}.h"', "", *functions(tables)])


def kernels_file(funcs: Kernels, banner: str) -> str:
    """Kernels that the models of an image share."""
    head = [banner, '#include "crt/abi.h"', '#include "crt/intrin.h"']
    head += [*_vectors(funcs), *_little(funcs), ""]
    heads = [f"crt_kernel {func.name};" for func, _ in funcs]
    return "\n".join([*head, *heads, "", *kernels(funcs, "")]).rstrip() + "\n"


def _vectors(funcs: Kernels) -> list[str]:
    """The headers of kernels with vectors, and of those with pairs, if some are."""
    every = [intrin for func, _ in funcs for intrin in intrins(func)]
    called = {intrin.name for intrin in every}
    named = sorted({intrin.header for intrin in every} - {""})
    found = [f'#include "{header}"' for header in named]
    found += [
        f'#include "{own.HEADER}"'
        for own in (between, extremes, floats, pairs, reals)
        if called & own.NAMES
    ]
    if not any(has_vectors(func) for func, _ in funcs):
        return found
    for own in (vector_eights, vector_packs, wide_vectors):
        if called & own.NAMES:
            return [*found, f'#include "{own.HEADER}"']
    if any(has_halves(func) for func, _ in funcs):
        return [*found, '#include "crt/halves.h"']
    return [*found, f'#include "{HEADER if called & NAMES else "crt/lanes.h"}"']


def _little(funcs: Kernels, packed_words: bool = False) -> list[str]:
    """The header that refuses a core on which words would be read wrong."""
    moved = any(has_words(func) or has_vectors(func) for func, _ in funcs)
    return ['#include "crt/little.h"'] if moved or packed_words else []


def kernels(funcs: Kernels, linkage: str) -> list[str]:
    """Kernels, each with a comment on what it does and whose it is; before them the
    functions that they call."""
    needed: dict[str, Intrin] = {}
    for func, _ in funcs:
        for intrin in intrins(func):
            needed.setdefault(intrin.name, intrin)
    called = [inline_function(i) for i in needed.values() if i.c is None]
    return [*called, *(_kernel(func, users, linkage) for func, users in funcs)]


def _model(tables: Tables) -> list[str]:
    name = tables.name
    lines: list[str] = []
    rows = tables.tensors
    for index, row in enumerate(rows):
        dims = ", ".join(map(str, row.tensor.shape)) or "0"
        lines.append(f"static const int32_t {name}_dims_{index}[] = {{{dims}}};")
    lines.append("")
    lines += name_arrays(tables, _strings(tables)) if tables.verified else []
    lines += ["/* name, dims, scale, zero point, bytes, at, align, region, type, rank,"]
    lines += [" * flags: inputs, then outputs, then parameters */"]
    lines += table(
        f"struct crt_tensor {name}_tensors[]",
        (line for i, row in enumerate(rows) for line in _tensor(row, i, tables)),
    )
    sizes = [f"    {size_macro(tables, row)}," for row in tables.regions]
    lines += table(f"uint32_t {name}_regions[]", sizes)
    own = f"{name}_name" if tables.verified else c_string(name)
    label = f"CRT_NAME({own})" if tables.named else "NULL"
    stages = "NULL" if tables.plain_stages else f"{name}_stages"
    layouts, devices, accelerator = "NULL", "NULL", "NULL"
    unpack = tables.unpack or "NULL"
    if tables.parameters:
        layouts = f"{name}_layouts"
        numbers = (f"    {row.layout}u," for row in tables.parameters)
        lines += table(f"uint32_t {layouts}[]", numbers)
    if tables.device_count > 1:
        devices, accelerator = f"{name}_region_devices", "&crt_accelerator"
        numbers = (f"    {row.device}," for row in tables.regions)
        lines += table(f"uint8_t {devices}[]", numbers)
    lines += state_tables(tables)
    state = f"&{name}_keeps" if tables.kept else "NULL"
    advance, links = tables.advance or "NULL", "NULL"
    if tables.links:
        links = f"{name}_links"
    convert = "crt_convert_input" if tables.converts else "NULL"
    counts = (
        tables.counters, len(tables.stages), len(tables.steps), len(tables.inputs),
        len(tables.outputs), len(tables.parameters), tables.pointer_count,
        tables.region_align, len(tables.regions), tables.device_count,
    )  # fmt: skip
    return [
        *lines,
        "/* The last line: where bands are counted; how many stages, steps, inputs,",
        " * outputs, parameters; pointers of the largest step; alignment; how many",
        " * regions, devices; rows; what converts inputs when they are set */",
        f"const struct crt_model {name}_model = {{",
        f"    CRT_ABI, {label}, {stages}, {name}_steps,",
        f"    {name}_tensors, {layouts}, {name}_regions,",
        f"    {devices}, {unpack}, {accelerator}, {advance}, {links}, {state},",
        f"    {', '.join(map(str, counts))}, {name}_rows, {convert}",
        "};",
        "",
    ]


def c_string(text: str) -> str:
    """A C string literal of any text."""
    safe = "".join(
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
        for b in text.encode()
    )
    return f'"{safe}"'


def _strings(tables: Tables) -> list[str]:
    """The literals of all names."""
    return [c_string(text) for text in name_symbols(tables).values()]


def _tensor(row: TensorRow, index: int, tables: Tables) -> list[str]:
    tensor = row.tensor
    text = c_string(tensor.name) if tables.named else "NULL"
    if tables.named and tables.verified:
        text = f"{tables.name}_tensor_{index}"
    if tables.named and index < len(tables.inputs) + len(tables.outputs):
        text = f"CRT_NAME({text})"  # of parameters, files of weights name them
    scale, zero = quantisation(row)
    kind = f"CRT_{tensor.dtype.name}"
    names = {CONSUMED: "CONSUMED", LAZY: "LAZY", PUSHED: "PUSHED",
             CONVERTED: "CONVERTED"}  # fmt: skip
    there = (f"CRT_TENSOR_{name}" for bit, name in names.items() if row.flags & bit)
    flags = " | ".join(there) or "0"
    number = expression(const(scale, DType.FLOAT32))
    text = f"    {{{text}, {tables.name}_dims_{index}, {number}, {zero},"
    text += f" {tensor.bytes}, {row.at}, {row.align}, {row.region}, {kind},"
    text += f" {len(tensor.shape)},"
    return fold(f"{text} {flags}}},")


def functions(tables: Tables) -> list[str]:
    """The functions of the header, over crt's: nothing of kernels or tables."""
    name = tables.name
    lines = [
        *fold(f"static struct crt_graph *{name}_graph(struct {name} *m)"),
        "{",
        "    return m == NULL ? NULL : &m->graph;",
        "}",
        "",
        *init_definition(tables),
        f"int {name}_reset(struct {name} *m)",
        "{",
        *forgotten(tables),
        f"    return crt_graph_reset({name}_graph(m));",
        "}",
        "",
        f"int {name}_run(struct {name} *m)",
        "{",
        *run_body(tables),
        "}",
        "",
        *cores_definitions(tables),
        *push_definitions(tables),
        *sample_definitions(tables),
        *state_definitions(tables),
        *verify_definition(tables),
    ]
    if tables.parameters:
        lines += _parameter_functions(name)
    for index, row in enumerate(tables.inputs):
        if not row.rows:
            lines += _input_functions(row, index, name)
    for index, row in enumerate(tables.outputs):
        lines += _output_functions(row, index, name)
    return braced(lines + definition(tables))


def _body(head: str, line: str) -> list[str]:
    return [*fold(head), "{", *fold(f"    {line}"), "}", ""]


def _parameter_functions(name: str) -> list[str]:
    me = f"struct {name} *m"
    lines = _body(
        f"int {name}_load_params({me}, struct crt_params *params)",
        f"return crt_graph_load_params({name}_graph(m), params);",
    )
    lines += _body(
        f"int {name}_share_params({me}, const struct {name} *donor)",
        "return crt_graph_share_params("
        f"{name}_graph(m), donor == NULL ? NULL : &donor->graph, NULL);",
    )
    return lines + _body(
        f"int {name}_release_params({me})",
        f"return crt_graph_release_params({name}_graph(m));",
    )


def _input_functions(row: TensorRow, index: int, name: str) -> list[str]:
    kind, size = row.tensor.dtype.c, row.tensor.bytes
    me = f"struct {name} *m"
    lines = _body(
        f"{kind} *{name}_{row.symbol}({me})",
        f"return crt_graph_input({name}_graph(m), {index});",
    )
    for verb in ("set", "bind"):
        lines += _body(
            f"int {name}_{verb}_{row.symbol}({me}, const {kind} *data)",
            f"return crt_graph_{verb}_input({name}_graph(m), {index}, data, {size}u);",
        )
    return lines


def _output_functions(row: TensorRow, index: int, name: str) -> list[str]:
    kind, size = row.tensor.dtype.c, row.tensor.bytes
    lines = _body(
        f"const {kind} *{name}_{row.symbol}(const struct {name} *m)",
        f"return m == NULL ? NULL : crt_graph_output(&m->graph, {index});",
    )
    return lines + _body(
        f"int {name}_bind_{row.symbol}(struct {name} *m, {kind} *data)",
        f"return crt_graph_bind_output({name}_graph(m), {index}, data, {size}u);",
    )
