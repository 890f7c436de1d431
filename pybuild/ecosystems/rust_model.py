"""A model as its Rust sees it: which names inputs and outputs have, and which of them
are set, bound, pushed or read where they are. Prints nothing."""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.dtype import DType
from pybuild.emit.tables.tables import CONVERTED, LAZY, Tables, TensorRow
from pybuild.records import dataclass
from pybuild.text.escaped import escaped

# https://doc.rust-lang.org/reference/keywords.html, of edition 2024 too
_WORDS = (
    "abstract as async await become box break const continue crate do dyn else enum "
    "extern false final fn for gen if impl in let loop macro match mod move mut "
    "override priv pub ref return self static struct super trait true try type "
    "typeof unsafe unsized use virtual where while yield"
)
KEYWORDS = frozenset(_WORDS.split())
# functions of every model
_OWN = (
    "new", "at", "run", "run_with", "reset", "selftest", "save_state", "restore_state",
    "verify", "push_samples", "samples_wanted", "outputs", "instance", "memory",
)  # fmt: skip
_TYPES = {
    DType.BOOL: "u8", DType.INT8: "i8", DType.UINT8: "u8", DType.INT16: "i16",
    DType.UINT16: "u16", DType.INT32: "i32", DType.UINT32: "u32", DType.INT64: "i64",
    DType.UINT64: "u64", DType.FLOAT32: "f32", DType.FLOAT64: "f64",
    DType.FLOAT16: "u16", DType.BFLOAT16: "u16",
}  # fmt: skip
# words of struct crt_graph on a core of 32 bits, and of struct crt_turn as it is
GRAPH_WORDS, TURN_WORDS = 8, 12


@dataclass(frozen=True)
class End:
    """An input or output in Rust; connected: its memory is another model's, too."""

    row: TensorRow
    symbol: str
    connected: bool = False

    @property
    def told(self) -> str:
        """The name in the file, in a comment."""
        return f"`{escaped(self.row.tensor.name).replace('`', chr(39))}`"

    @property
    def const(self) -> str:
        return self.row.symbol.upper()

    @property
    def kind(self) -> str:
        return _TYPES[self.row.tensor.dtype]

    @property
    def array(self) -> str:
        return f"[{self.kind}; {self.const}_LEN]"

    @property
    def zeros(self) -> str:
        """An array of zeros, in an example."""
        zero = "0.0" if self.kind.startswith("f") else "0"
        return f"[{zero}; {self.row.tensor.size}]"

    @property
    def settable(self) -> bool:
        """True if an input is copied to memory of the model."""
        return not (self.row.rows or self.row.flags & LAZY or self.connected)

    @property
    def in_place(self) -> bool:
        """True if an input may be written where it is."""
        return self.settable and not self.row.flags & CONVERTED

    @property
    def readable(self) -> bool:
        """True if a run may read an input where the caller has it."""
        return not (self.row.rows or self.connected)


@dataclass(frozen=True)
class RustModel:
    """A model for the printer.

    inputs, outputs  with names that Rust can have
    binds   True if memory may be lent to it for longer than a run
    """

    tables: Tables
    inputs: Sequence[End]
    outputs: Sequence[End]
    binds: bool

    @property
    def name(self) -> str:
        return self.tables.name

    @property
    def words(self) -> int:
        """Words of struct NAME at most, on any core."""
        tables = self.tables
        fresh = -(-len(tables.inputs) // 32)
        return GRAPH_WORDS + tables.base_count + max(1, fresh) + tables.sampled

    @property
    def borrowed(self) -> list[End]:
        """The inputs of run_with."""
        if self.tables.pushes or self.tables.sampled:
            return []
        return [end for end in self.inputs if end.readable]


def rust_model(
    tables: Tables,
    binds: bool,
    read: Sequence[str],
    written: Sequence[str],
) -> RustModel:
    """read, written  symbols of inputs and outputs that have one memory with those of
    other models
    """
    taken = {*KEYWORDS, *_OWN}
    inputs = [
        End(row, _name(row, taken, _of_input), row.symbol in read)
        for row in tables.inputs
    ]
    outputs = [
        End(row, _name(row, taken, _of_output), row.symbol in written)
        for row in tables.outputs
    ]
    return RustModel(tables, inputs, outputs, binds)


_of_input = ("", "set_", "bind_", "unbind_", "push_", "rows_left_", "rows_wanted_")
_of_output = ("", "bind_", "unbind_")


def _name(row: TensorRow, taken: set[str], begins: Sequence[str]) -> str:
    """A name all of whose functions are new."""
    name = row.symbol
    while taken & {begin + name for begin in begins}:
        name += "_"
    taken |= {begin + name for begin in begins}
    return name


def module(name: str) -> str:
    """The name of a model's module in an image."""
    return f"{name}_" if name in KEYWORDS else name
