"""The generated C for NAME_verify, which checks that flash is as it was built."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pybuild.emit.kernels.c import fold
from pybuild.emit.tables.sums import AGAIN, Sum, name_symbols, sums_of, verified_bytes
from pybuild.emit.tables.tables import Tables

_COMMENT = re.compile(r"\s*/\*.*?\*/", re.DOTALL)


def verify_declarations(tables: Tables) -> list[str]:
    """The declarations for NAME.h; [] without --verify."""
    if not tables.verified:
        return []
    name, upper = tables.name, tables.name.upper()
    own = ""
    if tables.parameters:
        own = f"\n * Parameters are not looked at: {name}_open_params checks theirs."
    text = f"""\
/* A pass over weights, constants and tables, on a core of 32 bits. */
#define {upper}_VERIFY_BYTES {verified_bytes(tables)}u

extern const struct crt_sums {name}_sums[2];

/* Whether flash holds the weights and tables of this model as they were built:
 * the next `bytes` of them, on from where `state` is, to the end of a pass at
 * most; with NULL all, in one call. Code is not looked at.{own}
 *
 * Owner   state is the caller's: zeroed, or static
 * Thread  at any time, in a run too
 * Errors  CRT_ERR_CHECKSUM: flash is damaged, see crt/verify.h */
int {name}_verify(struct crt_verify *state, uint32_t bytes);
"""
    return text.split("\n")


def verify_definition(tables: Tables) -> list[str]:
    """The definition for NAME.c, or beside an object; [] without --verify."""
    if not tables.verified:
        return []
    name = tables.name
    return [
        f"int {name}_verify(struct crt_verify *state, uint32_t bytes)",
        "{",
        f"    return crt_model_verify({name}_sums, state, bytes);",
        "}",
        "",
    ]


def name_arrays(tables: Tables, string: Sequence[str]) -> list[str]:
    """Names as arrays, of which there are checksums.

    string  their literals, in the order of name_symbols
    """
    lines: list[str] = []
    named = {row.symbol: row.named for row in sums_of(tables)}
    for symbol, text in zip(name_symbols(tables), string, strict=True):
        line = fold(f"static const char {symbol}[] = {text};")
        lines += ["#ifndef CRT_NO_NAMES", *line, "#endif"] if named[symbol] else line
    return [*lines, ""]


def sum_tables(tables: Tables, printed: str) -> list[str]:
    """Copies of tables of addresses, and the checksums; [] where not asked for.

    printed  the C of the tables
    """
    if not tables.verified:
        return []
    name, rows = tables.name, sums_of(tables, own_nans=True)
    lines = ["/* The tables of addresses again, for NAME_verify to compare. */"]
    for row in rows:
        if row.crc is None:
            lines += [*_copy(row.symbol, printed), ""]
    lines += ["/* data, copy, bytes, checksum; all of it twice */"]
    for end in ("list", f"list{AGAIN}"):
        lines.append(f"static const struct crt_sum {name}_sum_{end}[] = {{")
        for row in rows:
            lines += _row(row)
        lines += ["};", ""]
    both = f"    {{{name}_sum_list, {name}_sum_list{AGAIN},"
    count = f"     (uint32_t)(sizeof {name}_sum_list / sizeof {name}_sum_list[0])}},"
    head = f"const struct crt_sums {name}_sums[2] = {{"
    return [*lines, head, both, count, both, count, "};", ""]


def _row(row: Sum) -> list[str]:
    size = f"(uint32_t)sizeof {row.symbol}"
    if row.crc is None:
        is_one = row.symbol.endswith(("_model", "_keeps", "_slices"))
        data = f"&{row.symbol}" if is_one else row.symbol
        copy = data + AGAIN
        return fold(f"    {{{data}, {copy}, {size}, 0u}},")
    crc = f"0x{row.crc:08x}u"
    if row.big != row.crc:
        crc = f"CRT_BY_ORDER({crc}, 0x{row.big:08x}u)"
    line = fold(f"    {{{row.symbol}, NULL, {size}, {crc}}},")
    return ["#ifndef CRT_NO_NAMES", *line, "#endif"] if row.named else line


def _copy(symbol: str, printed: str) -> list[str]:
    """A table's definition under another name, without comments."""
    pattern = rf"^(?:static )?(const [\w *]+\b){symbol}((?:\[\])? = {{\n.*?}};)$"
    found = re.search(pattern, _COMMENT.sub("", printed), re.MULTILINE | re.DOTALL)
    assert found is not None, symbol
    text = f"static {found[1]}{symbol}{AGAIN}{found[2]}"
    first, *rest = (line for line in text.split("\n") if line.strip())
    return [*fold(first), *rest]
