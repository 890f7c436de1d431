"""A kernel as the planner sees it: its code, its tables, and the rows it accesses.
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
    ring                 the number of rows to keep, if the kernel prescribes it; 0: the
                         plan decides
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
        """True for a single row of a single image."""
        ways = (self.rows, self.window, self.pad, self.pad_row)
        return ways == (1, 1, 0, None)


# the order of what each output channel has
EACH = "of each output channel"


@dataclass(frozen=True)
class Packed:
    """A constant in the order in which its kernel reads it; `role` names it in the C.

    values      the elements in that order, or a function that arranges them on first
                use
    parameters  the replaceable tensors from which it is made; (): none, it is in flash
    layout      the id of its layout; 0: the parameter itself, unchanged
    place       its place in RAM if it is unpacked there; "": it is read where it is
                stored
    order       the layout in words, for readers of the C
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
        """Return a constant that is arranged on first use, as most candidates are never
        used."""
        made = functools.cache(functools.partial(arrange, *given))
        return cls(role, made, order=order)

    @property
    def array(self) -> Array:
        return self.values() if callable(self.values) else self.values

    @property
    def is_bound(self) -> bool:
        """True if its address is known only at run time."""
        return bool(self.parameters or self.place)


@dataclass(frozen=True)
class Candidate:
    """One way to compute a node.

    func      None: a task of the runtime, whose number is args[0]
    bands     calls per image (output rows, unless a band has several)
    scratch   bytes of working memory, 16-byte aligned
    in_place  inputs whose memory the first output may take over; if each band reads and
              writes one row, row by row; if rows differ in length, the shorter rows
              align at the end of the longer
    also_in_place  (output, input): further outputs that may lie over an input
    over      cheaper arguments, used if the first output overwrites the first input
    finish    a step of its own that runs after all bands are done
    small     one compact code for all layers, at more instructions or scratch
    spare     fewer bytes at far more instructions, for when memory is short
    rare      share of the iterations in which a rare condition holds
    slices    the arguments for each core's part of a call (cores/), with scratch for
              all cores; (): one core computes everything
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
    """Return the access to a tensor as a single row."""
    return RowAccess(tensor.name, 1, tensor.bytes, 1, 0)


def by_rows(tensor: Tensor) -> RowAccess:
    """Return the access to a tensor [N,H,W,C] as N * H consecutive rows."""
    rows = tensor.shape[1] if len(tensor.shape) == 4 else 1
    images = tensor.shape[0] if len(tensor.shape) == 4 else 1
    return RowAccess(tensor.name, rows, tensor.bytes // (rows * images))
