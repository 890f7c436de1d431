"""The contents of flash that NAME_verify checks: checksums of numbers, copies of tables
of addresses. Numbers and names, no text.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from pybuild.dtype import Array
from pybuild.emit.tables.tables import (
    KEPT_BYTES,
    MODEL_BYTES,
    SLICES_BYTES,
    STATE_BYTES,
    STEP_BYTES,
    TENSOR_BYTES,
    Tables,
)
from pybuild.kernels.base.candidate import ROWS_BYTES
from pybuild.records import dataclass

AGAIN = "_again"
# struct crt_operand, crt_stage, crt_link: no bytes between their members
_OPERAND = np.dtype([("at", "<u4"), ("buffer", "<u2"), ("rows", "<u2")])
_STAGE = np.dtype([("first", "<u2"), ("n", "u1"), ("device", "u1"), ("link", "<u2")])
_LINK = np.dtype(
    [("reader", "u1"), ("maker", "u1"), ("stride", "<u2"), ("ahead", "<i2"),
     ("rows", "<u2"), ("made", "u1"), ("asker", "u1")]
)  # fmt: skip


@dataclass(frozen=True)
class Sum:
    """One array; crc: None of a table of addresses, which is there twice.

    bytes  where an address has 4
    big    the checksum where numbers begin with their highest byte
    named  it is there unless CRT_NO_NAMES leaves it out
    """

    symbol: str
    bytes: int
    crc: int | None = None
    big: int | None = None
    named: bool = False


def sums_of(tables: Tables, own_nans: bool = False) -> tuple[Sum, ...]:
    """All arrays of the model, in the order in which they are looked at.

    own_nans  NaNs are printed as C's NAN, whatever bits they had
    """
    return (*_copied(tables), *_numbers(tables), *_named(tables), *(
        _sum(c.symbol, _printed(c.array) if own_nans else c.array)
        for c in tables.constants
    ))  # fmt: skip


def verified_bytes(tables: Tables) -> int:
    """The bytes that one verification pass reads, with pointers of 4 bytes."""
    return sum(row.bytes for row in sums_of(tables))


def _copied(tables: Tables) -> Iterator[Sum]:
    """Addresses are known when firmware is linked."""
    sizes = {
        "model": MODEL_BYTES,
        "steps": STEP_BYTES * len(tables.steps),
        "constants": 4 * max(len(tables.constant_list), 1),
        "rows": ROWS_BYTES * max(len(tables.rows), 1),
        "tensors": TENSOR_BYTES * len(tables.tensors),
    }
    if tables.kept:
        sizes |= {"keeps": STATE_BYTES, "kept": KEPT_BYTES * len(tables.kept)}
    if tables.cores > 1:
        slices = tables.slice_bytes - SLICES_BYTES
        sizes |= {"slice_args": slices, "slices": SLICES_BYTES}
    for word, size in sizes.items():
        yield Sum(f"{tables.name}_{word}", size)


def _numbers(tables: Tables) -> Iterator[Sum]:
    name = tables.name
    yield _sum(f"{name}_args", np.array(tables.args or (0,), "<i4"))
    operands = [(o.at, o.buffer, o.rows) for o in tables.operands]
    yield _sum(f"{name}_operands", np.array(operands or [(0, 0, 0)], _OPERAND))
    if tables.links:
        yield _sum(f"{name}_links", np.array([tuple(x) for x in tables.links], _LINK))
    if not tables.plain_stages:
        stages = [(s.first, s.count, s.device, s.link) for s in tables.stages]
        yield _sum(f"{name}_stages", np.array(stages, _STAGE))
    for index, row in enumerate(tables.tensors):
        dims = np.array(row.tensor.shape or (0,), "<i4")
        yield _sum(f"{name}_dims_{index}", dims)
    sizes = np.array([row.bytes for row in tables.regions], "<u4")
    yield _sum(f"{name}_regions", sizes)
    if tables.parameters:
        layouts = np.array([row.layout for row in tables.parameters], "<u4")
        yield _sum(f"{name}_layouts", layouts)
    if tables.device_count > 1:
        devices = np.array([row.device for row in tables.regions], "u1")
        yield _sum(f"{name}_region_devices", devices)


def name_symbols(tables: Tables) -> dict[str, str]:
    """The symbols of names in flash, and the names; {} where there are none."""
    if not tables.named:
        return {}
    rows = {f"{tables.name}_tensor_{i}": r for i, r in enumerate(tables.tensors)}
    texts = {symbol: row.tensor.name for symbol, row in rows.items()}
    return {f"{tables.name}_name": tables.name, **texts}


def _named(tables: Tables) -> Iterator[Sum]:
    kept = len(tables.inputs) + len(tables.outputs)
    for index, (symbol, text) in enumerate(name_symbols(tables).items()):
        raw = text.encode() + b"\0"
        crc = zlib.crc32(raw)
        # of parameters, files of weights name them
        yield Sum(symbol, len(raw), crc, crc, index <= kept)


def _sum(symbol: str, array: Array) -> Sum:
    flat = np.ascontiguousarray(array).reshape(-1)
    little = flat.astype(flat.dtype.newbyteorder("<"))
    big = flat.astype(flat.dtype.newbyteorder(">"))
    crc, other = zlib.crc32(little.tobytes()), zlib.crc32(big.tobytes())
    return Sum(symbol, flat.nbytes, crc, other)


def _printed(array: Array) -> Array:
    """The values that a C compiler reads from the printed array."""
    if array.dtype not in (np.float32, np.float64):
        return array
    return np.where(np.isnan(array), array.dtype.type(np.nan), array)
