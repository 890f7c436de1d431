"""Limits for a file that is read: nodes, and bytes of values that are
computed of its constants. Knows no format and no operator."""

from __future__ import annotations

import zlib
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.text.short_names import brief

# more than this is not a model for a microcontroller
MOST_NODES = 1 << 17
# of values computed of constants: this, and so many times the bytes that are given
FREE_BYTES, TIMES = 1 << 28, 16
# multiplications for values that are computed of constants
MOST_MACS = 1 << 32
# rows, or columns, of what is resized: each takes some 100 bytes of numbers
MOST_RESIZED = 1 << 20

# what zipfile raises for archives that are damaged or (RuntimeError) encrypted
UNPACKING = (BadZipFile, zlib.error, EOFError, OSError, RuntimeError)


class TooMuch(BuildError):
    """A file asks for more than it may: nothing behind it is examined."""


class Budget:
    """The remaining allowance of memory and nodes for a file.

    source  the file, for messages
    given   bytes of it, and of what lies beside it
    """

    def __init__(self, source: str, given: int) -> None:
        self.source = source
        self.nodes, self.macs = MOST_NODES, MOST_MACS
        self.bytes = FREE_BYTES + TIMES * given

    def take_nodes(self, count: int = 1) -> None:
        """Counts nodes against the allowance.

        Errors  TooMuch where that is more nodes, or turns of loops, than are left
        """
        self.nodes -= count
        if self.nodes < 0:
            what = f"asks for more than {MOST_NODES} nodes, with loops and functions"
            raise TooMuch(self.source, f"{what} written out", "split the model")

    def take_bytes(self, count: int) -> None:
        """Counts bytes against the allowance.

        Errors  TooMuch where values of constants take more bytes than are left
        """
        self.bytes -= count
        if self.bytes < 0:
            most = f"{FREE_BYTES >> 20} MiB and {TIMES} times its own bytes"
            what = f"asks for constants of more bytes than {most}"
            raise TooMuch(self.source, what, "compute less of them")

    def put(self, values: dict[str, Array], name: str, value: Array) -> None:
        """Notes a value that was computed of constants.

        Errors  TooMuch
        """
        self.take_bytes(value.nbytes)
        values[name] = value

    def take_archive(self, archive: ZipFile) -> None:
        """Counts the unpacked bytes of an archive against the allowance.

        Errors  TooMuch where what is packed is larger than what is left; BuildError
        where it is packed as neither torch nor numpy does it
        """
        for entry in archive.infolist():
            if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                name, method = brief(entry.filename), entry.compress_type
                what = f"packs '{name}' by method {method}"
                raise BuildError(self.source, what, "pack it by deflate, or not at all")
        self.take_bytes(sum(entry.file_size for entry in archive.infolist()))

    def spares_macs(self, count: int) -> bool:
        """True if so many multiplications are left; takes them if so."""
        enough = count <= self.macs
        self.macs -= count if enough else 0
        return enough
