"""A kernel as the planner sees it: its code, its tables, its rows of each tensor.

Knows no addresses: rows and bytes only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import field
from typing import Any

from pybuild.dtype import Array
from pybuild.ir.graph import Tensor
from pybuild.ir.loop import Func
from pybuild.records import dataclass


@dataclass(frozen=True)
class RowAccess:
    """How a kernel reads or writes one tensor: `rows` rows of `row_bytes`.

    window, stride, pad  as in crt_operand; stride 0: the same window every time
    pad_row              bytes of a row outside the tensor; None: never outside
    ring                 rows that are kept, where the kernel says so; 0: the plan does
    """

    tensor: str
    rows: int
    row_bytes: int
    window: int = 1
    stride: int = 1
    pad: int = 0
    pad_row: bytes | None = None
    ring: int = 0

    @property
    def is_single(self) -> bool:
        """True if it is one row, of one image."""
        ways = (self.rows, self.window, self.pad, self.pad_row)
        return ways == (1, 1, 0, None)


# the order of what each output channel has
EACH = "of each output channel"


@dataclass(frozen=True)
class Packed:
    """A constant in the order its kernel reads it; `role` names it in the C.

    values      the elements in that order, or what arranges them when they are read
    parameters  the tensors that users may replace and that it is made of; () if none:
                then it is in flash
    layout      how it is made of them; 0: it is the one, as it is
    place       the place in RAM that it is unpacked to; "": it is read where it is
    order       how its elements lie, for readers of the C
    """

    role: str
    values: Array | Callable[[], Array]
    parameters: tuple[str, ...] = ()
    layout: int = 0
    place: str = ""
    order: str = field(default="", compare=False)

    @classmethod
    def later(
        cls, role: str, order: str, arrange: Callable[..., Array], *given: Any
    ) -> Packed:
        """A constant that is arranged when it is first read, because most candidates
        never are."""
        made = functools.cache(functools.partial(arrange, *given))
        return cls(role, made, order=order)

    @property
    def array(self) -> Array:
        return self.values() if callable(self.values) else self.values

    @property
    def is_bound(self) -> bool:
        """True if it is known only at run time where it lies."""
        return bool(self.parameters or self.place)


@dataclass(frozen=True)
class Candidate:
    """One way to compute a node.

    func      None: a task of the runtime's own, whose number is args[0]
    bands     calls per image (output rows, unless a band has several)
    scratch   bytes of working memory, 16-byte aligned
    in_place  inputs whose memory the first output may take over, or, where each band
              reads one row of it and writes one, row by row; of rows that are not
              as long the last, or shorter, bytes are read
    also_in_place  (output, input): further outputs whose memory an input's may be
    over      arguments for less work, where the first output lies over the first input
    finish    what ends the work when all bands are done: a step of its own
    small     little code for all layers, at more instructions or scratch
    spare     fewer bytes at far more instructions: where memory is short
    rare      share of the turns in which a rare test holds
    slices    arguments with which each core computes its part of a call (cores/);
              scratch is then of all cores; () if one core computes all
    cost      estimated instructions of one inference; `code` estimated bytes
    """

    func: Func | None
    args: tuple[int, ...]
    outputs: tuple[RowAccess, ...]
    inputs: tuple[RowAccess, ...]
    constants: tuple[Packed, ...] = ()
    images: int = 1
    bands: int = 1
    scratch: int = 0
    in_place: tuple[int, ...] = ()
    cost: int = 0
    also_in_place: tuple[tuple[int, int], ...] = ()
    over: tuple[int, ...] | None = None
    finish: Candidate | None = None
    small: bool = False
    spare: bool = False
    rare: float = 0.0
    slices: tuple[tuple[int, ...], ...] = ()


# enum crt_task of crt/abi.h
TASK_COPY, TASK_WAIT, TASK_UNPACK, TASK_INPUT = 1, 2, 3, 4
# of struct crt_rows, where a pointer has 4 bytes
ROWS_BYTES = 20


def whole(tensor: Tensor) -> RowAccess:
    """The tensor as a single row."""
    return RowAccess(tensor.name, 1, tensor.bytes, 1, 0)


def by_rows(tensor: Tensor) -> RowAccess:
    """A tensor [N,H,W,C] as its N * H rows, one after the other."""
    rows = tensor.shape[1] if len(tensor.shape) == 4 else 1
    images = tensor.shape[0] if len(tensor.shape) == 4 else 1
    return RowAccess(tensor.name, rows, tensor.bytes // (rows * images))
