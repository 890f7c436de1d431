"""Prints NAME.h: what firmware includes."""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.emit.c.cores import cores_declarations
from pybuild.emit.c.regions import macros, memory, set_devices_declaration
from pybuild.emit.c.row_input import push_declarations, row_facts
from pybuild.emit.c.samples import sample_declarations, sample_member
from pybuild.emit.c.state import state_declarations, state_macro
from pybuild.emit.c.stateless import declarations
from pybuild.emit.c.sums import verify_declarations
from pybuild.emit.kernels.c import block_comment, expression
from pybuild.emit.llvm.model import ABI
from pybuild.emit.tables.tables import CONSUMED, CONVERTED, LAZY, Tables, TensorRow
from pybuild.ir.loop import const


def header_file(tables: Tables, banner: str) -> str:
    """NAME.h: sizes, the instance, and one function per thing a user does."""
    name, upper = tables.name, tables.name.upper()
    lines = [
        banner.rstrip(),
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        f'#include "crt/{"weights" if tables.parameters else "graph"}.h"',
        *(['#include "crt/cores.h"'] if tables.cores > 1 else []),
        *(['#include "crt/push.h"'] if tables.pushes else []),
        *(['#include "crt/state.h"'] if tables.kept else []),
        *(['#include "crt/verify.h"'] if tables.verified else []),
        "",
        f"#if CRT_ABI != {ABI}",
        f'#error "{name}.h was made for CRT_ABI {ABI}: regenerate it"',
        "#endif",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        *macros(tables),
        *state_macro(tables),
    ]
    for role, rows in (("input", tables.inputs), ("output", tables.outputs)):
        for index, row in enumerate(rows):
            prefix = f"{upper}_{row.symbol.upper()}"
            lines += row_facts(row, index, prefix)
            lines += _facts(row, prefix, f"{role} {index}")
    lines += _types(tables)
    lines += cores_declarations(tables)
    lines += push_declarations(tables)
    lines += sample_declarations(tables)
    lines += state_declarations(tables)
    lines += verify_declarations(tables)
    for row in tables.inputs:
        lines += [] if row.rows else _input(row, name)
    for row in tables.outputs:
        lines += _output(row, name)
    lines += declarations(tables)
    return "\n".join([*lines, *_checks(tables), *_end()])


def _facts(row: TensorRow, prefix: str, role: str) -> list[str]:
    tensor = row.tensor
    shape = ",".join(map(str, tensor.shape))
    text = f'{role}, "{tensor.name}": {tensor.dtype.value} [{shape}]'
    quant = tensor.quant
    if quant:
        text += f"; real = {quant.scale[0]:.9g} * (q - {quant.zero_point[0]})"
    if row.bound:
        text += f"; along axis {row.bound.axis} only as many hold as "
        text += f'"{row.bound.count}" says; if that is more, all'
    lines = [*block_comment(text), f"#define {prefix}_LEN {tensor.size}u"]
    lines += [f"#define {prefix}_DIM{i} {dim}" for i, dim in enumerate(tensor.shape)]
    if quant:
        scale = expression(const(quant.scale[0], DType.FLOAT32))
        lines.append(f"#define {prefix}_SCALE {scale}")
        lines.append(f"#define {prefix}_ZERO_POINT ({quant.zero_point[0]})")
    return [*lines, f"#define {prefix}_ALIGN {row.align}u", ""]


def _types(tables: Tables) -> list[str]:
    name = tables.name
    bases = tables.base_count
    words = max(1, -(-len(tables.inputs) // 32))
    begun = ""
    if tables.parameters:
        begun = f":\n * {name}_release_params first, or its image stays in use"
    head = f"""\
/* One instance; caller-owned, as many as there are arenas. */
struct {name} {{
    struct crt_graph graph;
    void *base[{bases}];
    uint32_t fresh[{words}];{sample_member(tables)}
}};

/* The model itself, const: for the crt_graph_ functions. */
extern const struct crt_model {name}_model;

/* Prepares an instance. Call once, and again to start over{begun}.
 *
 * Owner   memory stays the caller's and must outlive m
 * Errors  CRT_ERR_NULL, CRT_ERR_REGION (too small), CRT_ERR_ALIGN */
int {name}_init(struct {name} *m, const struct {name}_memory *memory);
"""
    late, tensors = "", (*tables.inputs, *tables.outputs)
    if tables.parameters or any(row.flags & LAZY for row in tensors):
        late = ";\n *         CRT_ERR_UNBOUND: bind parameters and lazy tensors first"
    kept = "\n * What is kept from run to run is as in the beginning."
    kept = kept if tables.kept else ""
    again = ", and it is to be reset" if tables.kept else ""
    text = f"""\
/* Forgets inputs and results; bindings are kept.{kept} */
int {name}_reset(struct {name} *m);

/* Runs the model once.
 *
 * Thread  one per instance; distinct instances run at the same time
 * Errors  CRT_ERR_INPUT_MISSING; CRT_ERR_INPUT_CONSUMED: give the input
 *         again{late} */
int {name}_run(struct {name} *m);

#ifdef CRT_WITH_SELFTEST
/* Runs a stored input and compares with the stored output. Uses m up: the
 * inputs are to be given again{again}.
 *
 * Errors  CRT_ERR_SELFTEST: this build gives another answer */
int {name}_selftest(struct {name} *m);
#endif
"""
    lines = [*memory(tables), *head.split("\n"), *set_devices_declaration(tables)]
    lines += text.split("\n")
    return [*lines, *_parameters(tables)] if tables.parameters else lines


def _parameters(tables: Tables) -> list[str]:
    name, upper = tables.name, tables.name.upper()
    text = f"""\
/* The parameters that the model came with: an image in flash. */
#define {upper}_PARAMS_BYTES {tables.joined_bytes or tables.image_bytes}u

/* RAM for what is packed in it: caller-owned, once for all instances, at a
 * multiple of CRT_UNPACK_ALIGN. 0: nothing is packed. */
#define {upper}_UNPACKED_BYTES {tables.unpacked_bytes}u

/* Verifies it, and unpacks to ram what is packed; once, for all instances. No
 * instance counts as its user then.
 *
 * Shapes  ram[{upper}_UNPACKED_BYTES], NULL for 0
 * Owner   params is the caller's and must outlive the instances
 * Errors  CRT_ERR_CHECKSUM and others of crt/params.h: flash is damaged */
int {name}_open_params(struct crt_params *params, void *ram);

/* Binds the parameters of an image that was verified (crt/params.h), where they
 * lie: in flash, or in a file. Any number of instances may have the same.
 *
 * Owner   params is the caller's and must outlive m, or {name}_release_params
 * Errors  CRT_ERR_NAME: it has none of this model's; CRT_ERR_LAYOUT: they are
 *         arranged for another build; others of crt/weights.h */
int {name}_load_params(struct {name} *m, struct crt_params *params);

/* The parameters of another instance, which may be released first. */
int {name}_share_params(struct {name} *m, const struct {name} *donor);

/* Lets go of all parameters: before m is given up. */
int {name}_release_params(struct {name} *m);
"""
    return text.split("\n")


def _input(row: TensorRow, name: str) -> list[str]:
    kind, symbol = row.tensor.dtype.c, row.symbol
    if row.flags & CONVERTED:
        return _converted(row, name)
    what = f"Input '{row.tensor.name}': the memory to fill before a run."
    if row.flags & CONSUMED:
        what = what[:-1] + ", which uses it up: other things lie there while it runs."
    if row.flags & LAZY:
        what = f"Input '{row.tensor.name}': lazy, it has no memory of its own. Bind it;"
        what += f" till then this is NULL and {name}_set_{symbol} fails: CRT_ERR_LAZY."
    elif row.device:
        what = f"Input '{row.tensor.name}': in the memory of device {row.device}, where"
        what += f" {name}_set_{symbol} copies it; this is NULL, and"
        what += f" {name}_bind_{symbol} takes an address of the device."
    return [
        *block_comment(what),
        f"{kind} *{name}_{symbol}(struct {name} *m);",
        "/* ... copied from data; or read where it is, without a copy, until bound",
        " * again (NULL: back to its own memory). Not in the arena. */",
        f"int {name}_set_{symbol}(struct {name} *m, const {kind} *data);",
        f"int {name}_bind_{symbol}(struct {name} *m, const {kind} *data);",
        "",
    ]


def _converted(row: TensorRow, name: str) -> list[str]:
    kind, symbol = row.tensor.dtype.c, row.symbol
    what = (
        f"Input '{row.tensor.name}': converted from data, which is free again, to the "
        "integers that a run uses up; or read where it is by each run, until bound "
        "again (NULL: to be set). Aligned as above, not in the arena."
    )
    bound = f"... the memory that it is bound to; NULL: it is not. {name}_set_{symbol} "
    return [
        *block_comment(what),
        f"int {name}_set_{symbol}(struct {name} *m, const {kind} *data);",
        f"int {name}_bind_{symbol}(struct {name} *m, const {kind} *data);",
        *block_comment(bound + "keeps the integers alone."),
        f"{kind} *{name}_{symbol}(struct {name} *m);",
        "",
    ]


def _output(row: TensorRow, name: str) -> list[str]:
    kind, symbol = row.tensor.dtype.c, row.symbol
    what = f"Output '{row.tensor.name}': valid from a {name}_run to the next, or until"
    what += " an input is given."
    if row.flags & LAZY:
        what += " It has no memory of its own: bind it, till then this is NULL."
    elif row.device:
        what += f" It is in the memory of device {row.device}: this is NULL,"
        what += " crt_graph_get_output copies it from there, and"
        what += f" {name}_bind_{symbol} takes an address of the device."
    else:
        what += " Before the first run it holds what the memory held."
    return [
        *block_comment(what),
        f"const {kind} *{name}_{symbol}(const struct {name} *m);",
        "/* ... written to data instead (NULL: back to its own memory). Not in the",
        " * arena. */",
        f"int {name}_bind_{symbol}(struct {name} *m, {kind} *data);",
        "",
    ]


def _checks(tables: Tables) -> list[str]:
    name = tables.name
    slack = tables.instance_bytes
    return [
        "/* Checked when this is compiled: an array of -1 elements is an error. */",
        f"typedef char {name}_check_int[sizeof(int32_t) == 4 ? 1 : -1];",
        f"typedef char {name}_check_float[sizeof(float) == 4 ? 1 : -1];",
        f"typedef char {name}_check_size[",
        f"    sizeof(void *) > 4 || sizeof(struct {name}) <= {slack} ? 1 : -1];",
        "",
    ]


def _end() -> list[str]:
    return ["#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
