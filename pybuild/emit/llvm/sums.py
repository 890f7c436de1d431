"""The checksums of NAME_verify as LLVM IR, for objects: of cores whose addresses have 4
bytes and whose numbers begin with their lowest one.

The twin of emit/c/sums.py.
"""

from __future__ import annotations

import re

from pybuild.emit.tables.sums import AGAIN, Sum, sums_of
from pybuild.emit.tables.tables import Tables

_SUM, _SUMS = "{ ptr, ptr, i32, i32 }", "{ ptr, ptr, i32 }"


def with_sums(text: str, tables: Tables) -> str:
    """The module with NAME_sums and what it refers to; as it was, where that was not
    asked for."""
    if not tables.verified:
        return text
    rows, name = sums_of(tables), tables.name
    lines = [_copy(row.symbol, text) for row in rows if row.crc is None]
    values = ", ".join(f"{_SUM} {_row(row)}" for row in rows)
    kind = f"[{len(rows)} x {_SUM}]"
    for end in ("", AGAIN):
        lines.append(f"@{name}_sum_list{end} = internal constant {kind} [{values}]")
    lists = f"ptr @{name}_sum_list, ptr @{name}_sum_list{AGAIN}"
    one = f"{_SUMS} {{ {lists}, i32 {len(rows)} }}"
    lines.append(f"@{name}_sums = constant [2 x {_SUMS}] [{one}, {one}]")
    return "\n".join([text, *(f"{line}, align 4" for line in lines), ""])


def _row(row: Sum) -> str:
    copy = f"ptr @{row.symbol}{AGAIN}" if row.crc is None else "ptr null"
    return f"{{ ptr @{row.symbol}, {copy}, i32 {row.bytes}, i32 {row.crc or 0} }}"


def _copy(symbol: str, text: str) -> str:
    """A table under another name."""
    pattern = rf"^@{symbol} = (?:internal )?constant (.*), align \d+$"
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, symbol
    return f"@{symbol}{AGAIN} = internal constant {found[1]}"
