"""The results of each step of a run on a board: rows are kept in a buffer there.

As many steps at a time as the board has memory for; each time is one run.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.host.abi import errors
from pybuild.kernels.base.candidate import RowAccess
from pybuild.rpc.calls import NONE, Number
from pybuild.rpc.net import RemoteNet

_MEMORY = -30  # CRT_ERR_MEMORY
_ENTRY = 8  # bytes of the table for each step


def recorded(net: RemoteNet, given: Mapping[str, Any]) -> dict[str, Array]:
    """The bytes of every tensor that a kernel computes, by its name.

    Errors  BuildError where the board has no memory for one of them
    """
    plan = net.plan
    layers = [(i, step.candidate.outputs) for i, step in enumerate(plan.steps)
              if step.is_layer]  # fmt: skip
    found: dict[str, Array] = {}
    for output in range(max((len(outputs) for _, outputs in layers), default=0)):
        left = {i: outputs[output] for i, outputs in layers if output < len(outputs)}
        while left:
            sizes = [plan.graph.tensor(one.tensor).bytes for one in left.values()]
            count, buffer = _fitting(net, sizes)
            for name in plan.consumed:
                if found and name in given:  # a run before this one has used it up
                    net.set_input(name, given[name])
            taken = dict(list(left.items())[:count])
            found |= _watched(net, buffer, output, taken)
            left = {i: one for i, one in left.items() if i not in taken}
    return found


def _fitting(net: RemoteNet, sizes: Sequence[int]) -> tuple[int, int]:
    """The number of tensors that fit at a time, and a buffer for them."""
    table, count = _ENTRY * len(net.plan.steps), len(sizes)
    while True:
        try:
            return count, net.board.allocate(table + sum(sizes[:count]))
        except errors()[_MEMORY] as error:
            if count == 1:
                what = f"{net.board.welcome.board} has too little memory for a tensor"
                raise BuildError("debug", f"{what} ({error})") from None
            count = (count + 1) // 2


def _watched(
    net: RemoteNet, buffer: int, output: int, steps: Mapping[int, RowAccess]
) -> dict[str, Array]:
    """One run; the bytes of the outputs of this number that steps write, by name."""
    count, board = len(net.plan.steps), net.board
    entries, at = [(NONE, 0)] * count, _ENTRY * count
    pieces = {}
    for index, one in steps.items():
        size = net.plan.graph.tensor(one.tensor).bytes
        entries[index] = (at, size if output else one.row_bytes)
        pieces[one.tensor] = (at, size)
        at += size
    table = b"".join(struct.pack("<II", *entry) for entry in entries)
    try:
        board.write(buffer, 0, table)
        board.value(Number.WATCH, net.number, buffer, count | output << 16)
        net.go()
        board.value(Number.WATCH, net.number, NONE, 0)
        return {
            name: np.frombuffer(board.read(buffer, at, size), np.uint8)
            for name, (at, size) in pieces.items()
        }
    finally:
        board.value(Number.RELEASE, buffer)
