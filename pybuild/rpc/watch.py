"""What each step of a run on a board writes: rows are kept in a buffer there.

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
from pybuild.rpc.calls import NONE, Number
from pybuild.rpc.net import RemoteNet

_MEMORY = -30  # CRT_ERR_MEMORY
_ENTRY = 8  # bytes of the table for each step


def recorded(net: RemoteNet, given: Mapping[str, Any]) -> dict[int, Array]:
    """The bytes of every step that a kernel computes.

    Errors  BuildError where the board has no memory for one of them
    """
    plan = net.plan
    sizes = {
        index: plan.graph.tensor(step.node.output).bytes
        for index, step in enumerate(plan.steps)
        if step.is_layer
    }
    found: dict[int, Array] = {}
    left = list(sizes)
    while left:
        count, buffer = _fitting(net, [sizes[index] for index in left])
        for name in plan.consumed:
            if found and name in given:  # a run before this one has used it up
                net.set_input(name, given[name])
        found |= _watched(net, buffer, {index: sizes[index] for index in left[:count]})
        left = left[count:]
    return found


def _fitting(net: RemoteNet, sizes: Sequence[int]) -> tuple[int, int]:
    """How many tensors fit at a time, and a buffer for them."""
    table, count = _ENTRY * len(net.plan.steps), len(sizes)
    while True:
        try:
            return count, net.board.allocate(table + sum(sizes[:count]))
        except errors()[_MEMORY] as error:
            if count == 1:
                what = f"{net.board.welcome.board} has too little memory for a tensor"
                raise BuildError("debug", f"{what} ({error})") from None
            count = (count + 1) // 2


def _watched(net: RemoteNet, buffer: int, sizes: Mapping[int, int]) -> dict[int, Array]:
    """One run; the bytes of these steps."""
    steps, board = net.plan.steps, net.board
    entries, at = [(NONE, 0)] * len(steps), _ENTRY * len(steps)
    for index, size in sizes.items():
        entries[index] = (at, steps[index].candidate.outputs[0].row_bytes)
        at += size
    table = b"".join(struct.pack("<II", *entry) for entry in entries)
    try:
        board.write(buffer, 0, table)
        board.value(Number.WATCH, net.number, buffer, len(steps))
        net.go()
        board.value(Number.WATCH, net.number, NONE, 0)
        return {
            index: np.frombuffer(board.read(buffer, entries[index][0], size), np.uint8)
            for index, size in sizes.items()
        }
    finally:
        board.value(Number.RELEASE, buffer)
