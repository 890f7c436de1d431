"""The step tables of a plan, as crt/abi.h wants them: numbers and names, no text.

Both printers (model_c, model_llvm) spell exactly what is here; assemble.py makes it.
"""

from __future__ import annotations

import hashlib

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Bound, Tensor
from pybuild.ir.loop import Func
from pybuild.kernels.base.candidate import ROWS_BYTES
from pybuild.plan.plan import ARENA_ALIGN
from pybuild.plan.schedule.lock_step import Link
from pybuild.records import dataclass

# enum crt_dtype
DTYPES = {
    DType.BOOL: 1, DType.INT8: 2, DType.UINT8: 3, DType.INT16: 4,
    DType.INT32: 5, DType.INT64: 6, DType.FLOAT32: 7, DType.UINT16: 8,
    DType.UINT32: 9, DType.UINT64: 10, DType.FLOAT64: 11, DType.FLOAT16: 12,
    DType.BFLOAT16: 13,
}  # fmt: skip
CONSUMED, LAZY, PUSHED, CONVERTED = 1, 2, 4, 8  # CRT_TENSOR_...
# what unpacks constants, and the header and source of crt that have it
UNPACK_HEADERS = {"crt_lz4_unpack": "lz4", "crt_copy_weights": "copy"}
# bytes of the structs of crt/abi.h where a pointer has 4 bytes
OPERAND_BYTES, STEP_BYTES, STAGE_BYTES, LINK_BYTES = 8, 24, 6, 10
TENSOR_BYTES, MODEL_BYTES, STATE_BYTES, KEPT_BYTES = 32, 80, 20, 16
SLICES_BYTES = 8
# of the checksum that saved state begins with
SUM_BYTES = 4


@dataclass(frozen=True)
class Constant:
    """An array in flash: a global symbol."""

    symbol: str
    array: Array
    comment: str


def identity(array: Array) -> tuple[str, bytes]:
    """Equal for arrays of the same elements; not the elements, which may be many."""
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return array.dtype.name, hashlib.sha256(raw.data).digest()


@dataclass(frozen=True)
class User:
    """A layer that a kernel serves, for readers of the C.

    layer     its short name; model: of an image
    what      operator, window and shapes
    pointers  what the kernel finds in p[], and in how many pointers each
    """

    layer: str
    what: str
    pointers: tuple[tuple[str, int], ...] = ()
    model: str = ""


@dataclass(frozen=True)
class MemoryRow:
    """A piece of a region, for readers of the C; live: from step to step."""

    region: str
    at: int
    bytes: int
    live: str
    what: str


Kernels = tuple[tuple[Func, tuple[User, ...]], ...]


@dataclass(frozen=True)
class Rows:
    """struct crt_rows; pad_row is the symbol of a Constant or ""."""

    pad_row: str
    row_bytes: int
    count: int
    ring: int
    window: int
    stride: int
    pad: int


# of what has no rows: scratch, a parameter, a constant
SINGLE_ROW = Rows("", 0, 1, 1, 1, 0, 0)


@dataclass(frozen=True)
class Operand:
    """struct crt_operand; rows: index in the list of those of all operands."""

    at: int
    buffer: int
    rows: int
    comment: str


@dataclass(frozen=True)
class StepRow:
    """struct crt_step; args, constants, operands: first index in the flat lists.

    kernel  its symbol; "" for a task of the runtime's own
    device  index into the device table
    layer, comment  its short name, and what it does; names: of its arguments
    slices  first index of each core's arguments; () if one core computes all
    """

    kernel: str
    args: int
    constants: int
    operands: int
    images: int
    bands: int
    counts: tuple[int, int, int, int]  # outputs, inputs, constants, scratch
    comment: str
    device: int = 0
    layer: str = ""
    names: tuple[str, ...] = ()
    slices: tuple[int, ...] = ()


@dataclass(frozen=True)
class StageRow:
    """struct crt_stage; link: first index in the flat list, 0 for none."""

    first: int
    count: int
    device: int
    link: int
    comment: str = ""


@dataclass(frozen=True)
class TensorRow:
    """struct crt_tensor, and the tensor's name in C.

    device  whose memory the home is in
    layout  of a parameter: 0 for row-major, else the number of an arrangement
    rows    of an input that is pushed: how many it has; 0: it is not
    bound   of an output that may hold less than it has room for
    sampled  of an input whose samples come a few at a time
    """

    tensor: Tensor
    symbol: str
    at: int
    align: int
    flags: int
    region: int = 0
    device: int = 0
    layout: int = 0
    rows: int = 0
    bound: Bound | None = None
    sampled: bool = False


@dataclass(frozen=True)
class RegionRow:
    """A piece of working memory, by its name in C.

    device  index of whose it is
    note    what the header says of it
    """

    name: str
    bytes: int
    device: int = 0
    note: str = ""


@dataclass(frozen=True)
class KeptRow:
    """struct crt_kept; initial is the symbol of a Constant or "" for zeros."""

    initial: str
    at: int
    bytes: int
    region: int
    comment: str


@dataclass(frozen=True)
class Tables:
    """A whole model for the printers.

    name     prefix of every global symbol
    kernels  each once, with the layers that use it
    constant_list  symbols; "" for what is bound at run time
    unused   regions of the user's that nothing lies in
    unpack   what steps unpack constants with: its symbol; "": none does
    packed_words  some are of more than a byte each, the low byte first
    image_bytes  of the parameters that the model came with; joined_bytes: of the image
             of several models that has them, 0: none has
    unpacked_bytes  RAM that their unpacking takes
    links    numbers of struct crt_link in its order; () if no stage is in lock step
    counters  where the bands of its steps are counted, in the first region
    named    names are in flash; else tensors are known by their numbers only
    warm_runs  of a stream, until results are those of the whole window
    kept     memory that is kept from run to run; state_id: of this arrangement of it
    memory   what lies where, for readers
    verified  NAME_verify finds flash that has changed
    """

    name: str
    kernels: Kernels
    constants: tuple[Constant, ...]
    args: tuple[int, ...]
    constant_list: tuple[str, ...]
    operands: tuple[Operand, ...]
    rows: tuple[Rows, ...]
    steps: tuple[StepRow, ...]
    stages: tuple[StageRow, ...]
    inputs: tuple[TensorRow, ...]
    outputs: tuple[TensorRow, ...]
    parameters: tuple[TensorRow, ...]
    regions: tuple[RegionRow, ...]
    device_count: int
    pointer_count: int
    unpack: str = ""
    packed_words: bool = False
    unused: tuple[RegionRow, ...] = ()
    image_bytes: int = 0
    joined_bytes: int = 0
    unpacked_bytes: int = 0
    links: tuple[Link, ...] = ()
    counters: int = 0
    named: bool = True
    kept: tuple[KeptRow, ...] = ()
    state_id: int = 0
    warm_runs: int = 0
    memory: tuple[MemoryRow, ...] = ()
    verified: bool = False

    @property
    def cores(self) -> int:
        """How many cores can compute a run together; 1 without slices."""
        return max((len(step.slices) for step in self.steps), default=0) or 1

    @property
    def arena_bytes(self) -> int:
        """The bytes of the CPU's arena, in all its regions."""
        return sum(row.bytes for row in self.regions if not row.device)

    @property
    def pushes(self) -> bool:
        """True if inputs come in rows."""
        return any(row.rows for row in self.inputs)

    @property
    def converts(self) -> bool:
        """True if an input is converted when it is set."""
        return any(row.flags & CONVERTED for row in self.inputs)

    @property
    def advance(self) -> str:
        """The function of crt that advances stages in lock step."""
        if self.converts:
            return "crt_convert_lockstep" if self.links else "crt_convert_advance"
        return "crt_lockstep" if self.links else ""

    @property
    def sampled(self) -> bool:
        """True if an input's samples come a few at a time."""
        return any(row.sampled for row in self.inputs)

    @property
    def state_bytes(self) -> int:
        """The bytes of the saved state; 0: there is none."""
        return SUM_BYTES + sum(row.bytes for row in self.kept) if self.kept else 0

    @property
    def has_arena(self) -> bool:
        """True if the CPU has one region and the user gave none."""
        return [r.name for r in self.regions if not r.device] == ["arena"]

    @property
    def takes_arena(self) -> bool:
        """True if an arena is all the memory that there is."""
        return self.device_count == 1 and self.has_arena and not self.unused

    @property
    def tensors(self) -> tuple[TensorRow, ...]:
        return (*self.inputs, *self.outputs, *self.parameters)

    @property
    def base_count(self) -> int:
        """CRT_BASE_COUNT of crt/abi.h."""
        ends = len(self.regions) + len(self.inputs) + len(self.outputs)
        return ends + 2 * len(self.parameters) + (self.device_count > 1)

    @property
    def region_align(self) -> int:
        return ARENA_ALIGN

    @property
    def weight_bytes(self) -> int:
        """Flash for weights, biases, multipliers, tables of values."""
        return sum(c.array.nbytes for c in self.constants)

    @property
    def table_bytes(self) -> int:
        """Flash for everything else that is not code, on a 32-bit target."""
        rows = self.tensors
        names = [self.name, *(row.tensor.name for row in rows)]
        text = sum(len(name.encode()) + 1 for name in names) if self.named else 0
        dims = sum(4 * len(row.tensor.shape) for row in rows)
        return (
            4 * (max(len(self.args), 1) + len(self.constant_list) + 1)
            + OPERAND_BYTES * len(self.operands) + ROWS_BYTES * len(self.rows)
            + STEP_BYTES * len(self.steps)
            + self.stage_bytes
            + TENSOR_BYTES * len(rows) + 4 * len(self.parameters)
            + 5 * len(self.regions) - 5
            + MODEL_BYTES + text + dims
            + (STATE_BYTES + KEPT_BYTES * len(self.kept) if self.kept else 0)
            + self.slice_bytes
        )  # fmt: skip

    @property
    def slice_bytes(self) -> int:
        """The part of these bytes that says what each core computes of a step."""
        several = self.cores > 1
        return SLICES_BYTES + 4 * self.cores * len(self.steps) if several else 0

    @property
    def plain_stages(self) -> bool:
        """True if each step is a stage on the CPU, so that no stage table is needed."""
        return all((s.count, s.device, s.link) == (1, 0, 0) for s in self.stages)

    @property
    def stage_bytes(self) -> int:
        """The part of these bytes that is for stages and the links of their steps."""
        stages = 0 if self.plain_stages else len(self.stages)
        return STAGE_BYTES * stages + LINK_BYTES * len(self.links)

    @property
    def instance_bytes(self) -> int:
        """struct NAME on a 32-bit target: crt_graph, base pointers, fresh words."""
        words = self.base_count + -(-len(self.inputs) // 32) + self.sampled
        return 32 + 4 * words
