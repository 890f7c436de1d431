"""Constants that are packed in flash and unpacked into RAM. Unpacked before each step
("lz4-layer"), they need RAM for the largest step only, but are unpacked in every run;
unpacked once, as parameters of an image ("lz4"), they need RAM for all, which all
instances share.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pybuild.ir.graph import Node
from pybuild.kernels.base.candidate import TASK_UNPACK, Candidate, Packed, RowAccess
from pybuild.params import lz4
from pybuild.records import dataclass

# a pointer to it, an operand and a step of its own cost about as much
LEAST_SAVING = 64
# of a parameter: its entry in the image, its row in the tables, their names
SLOT_BYTES = 128


@dataclass(frozen=True)
class Unpack:
    """A constant that a step unpacks: its place and size in RAM, and its bytes in
    flash.

    plain  the constant if it is stored uncompressed, see regions/weight_cache.py; None:
           packed
    words  True if its elements of several bytes each were packed byte by byte, the low
           byte first
    """

    step: int
    name: str
    place: str
    size: int
    packed: bytes
    plain: Packed | None = None
    words: bool = False


def find_packed(
    steps: Sequence[tuple[Node, Candidate]],
) -> tuple[list[tuple[Node, Candidate]], list[Unpack]]:
    """Return the steps with packed constants where that saves flash, and what to
    unpack."""
    made, found = [], []
    for index, (node, candidate) in enumerate(steps):
        constants = []
        for packed in candidate.constants:
            unpack = _tried(index, node, packed)
            if unpack is not None:
                found.append(unpack)
                packed = replace(packed, place=unpack.place)
            constants.append(packed)
        made.append((node, replace(candidate, constants=tuple(constants))))
    return made, found


def _tried(index: int, node: Node, packed: Packed) -> Unpack | None:
    if packed.is_bound or node.device:  # which read flash, not the CPU's memory
        return None
    made = _saving(packed)
    if not made:
        return None
    name = f"{node.name} {packed.role}"
    place = f"{node.output} {packed.role} (unpacked)"
    size, words = packed.array.nbytes, packed.array.itemsize > 1
    return Unpack(index, name, place, size, made, words=words)


def as_parameters(
    steps: Sequence[tuple[Node, Candidate]],
) -> list[tuple[Node, Candidate]]:
    """Return the steps; constants that packing makes smaller are bound from an
    image."""
    made = []
    for index, (node, candidate) in enumerate(steps):
        constants = tuple(
            replace(p, parameters=(f"{index}.{p.role}",), layout=_content(p))
            if not p.is_bound and _saving(p, SLOT_BYTES)
            else p
            for p in candidate.constants
        )
        made.append((node, replace(candidate, constants=constants)))
    return made


def _content(packed: Packed) -> int:
    """Return a layout id that only these bytes have: they are not a user's
    parameter."""
    return zlib.crc32(packed.array.tobytes()) or 1


def _saving(packed: Packed, least: int = LEAST_SAVING) -> bytes:
    """Return the packed bytes, or b"" if they save too little."""
    data = np.ascontiguousarray(packed.array).tobytes()
    made = lz4.pack(data)
    return made if len(data) - len(made) >= least else b""


def task(unpack: Unpack) -> tuple[Node, Candidate]:
    """Return the step that unpacks or copies one constant."""
    node = Node("load" if unpack.plain else "unpack", unpack.name, (), (unpack.place,))
    stored = Packed("lz4", np.frombuffer(unpack.packed, np.uint8))
    return node, Candidate(
        func=None,
        args=(TASK_UNPACK, len(unpack.packed), unpack.size),
        outputs=(RowAccess(unpack.place, 1, unpack.size, 1, 0),),
        inputs=(),
        constants=(unpack.plain or stored,),
    )
