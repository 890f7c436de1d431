"""How much stack a program needs at most: frames along the deepest chain of calls.

Frames are what the compiler says of each function (-fstack-usage); where it says
nothing (zig, LLVM's objects, run-time libraries) what the machine code pushes. Calls
are read off the machine code.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import numpy as np

from pybuild.boards.firmware.elf import Elf, Symbol
from pybuild.boards.firmware.machine_code import flows
from pybuild.boards.firmware.vector_frames import vector_bytes
from pybuild.bounds.stack import Chain, deepest
from pybuild.dtype import Array
from pybuild.emit.tables.tables import STEP_BYTES
from pybuild.errors import BuildError
from pybuild.records import dataclass

_CALLER = "board_call"  # calls what the runner gives it: the model's run
# of the runner and the server, of the second core as a device, and what the server
# was given: crt calls them by pointers
_GIVEN = {
    "record", "board_second_copy", "board_second_launch", "board_second_wait",
    "board_second_look",
    "crt_rpc_port_put", "crt_rpc_port_get", "crt_rpc_port_ticks",
}  # fmt: skip


@dataclass(frozen=True)
class _Function:
    frame: int
    calls: frozenset[str]
    indirect: bool


def stack_chain(
    elf: Elf, folder: Path, start: str, runs: Collection[str], arch: str
) -> Chain:
    """The chain of calls from `start` on that needs most stack.

    folder  of the compiler's .su files
    runs    what of the model the runner calls through a pointer
    Errors  BuildError for recursion, or a frame without a fixed size
    """
    functions = _functions(elf, _usages(folder), arch)
    tabled = _tabled(elf, arch) | (_GIVEN & set(functions))
    runtime, size = elf.sections.get(".runtime", (0, 0))
    inside = range(runtime, runtime + size)
    own = {name for name in tabled if elf.address(name) in inside}
    below = _below(own, functions)  # of the runtime, called by it through the tables

    def reached(name: str) -> set[str]:
        calls = set(functions[name].calls)
        if functions[name].indirect:
            if name == _CALLER:
                calls |= set(runs)
            elif elf.address(name) in inside:
                calls |= tabled - own if name in below else tabled
        return calls

    return deepest([start], lambda name: functions[name].frame, reached)


def _below(names: set[str], functions: Mapping[str, _Function]) -> set[str]:
    """The functions and all that they call by name: what they call through tables are
    kernels, never each other."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in functions and name not in found:
            found.add(name)
            waiting += functions[name].calls
    return found


def _tabled(elf: Elf, arch: str) -> set[str]:
    """The functions whose addresses stand in the model's tables: its kernels."""
    at, size = elf.sections.get(".tables", (0, 0))
    data = elf.image(at)[:size] if size else b""
    words = np.frombuffer(data[: len(data) // 4 * 4], "<u4")
    thumb = 1 if arch == "arm" else 0
    known = words[_pointers(elf, at, len(words))]
    addresses = set(known.tolist()) - {0}  # no pointer, though code may be there
    return {s.name for s in elf.symbols if s.code and s.address | thumb in addresses}


def _pointers(elf: Elf, at: int, count: int) -> Array:
    """A flag for each of `count` words: whether it may point to a function. Only arrays
    of steps and models have such pointers, because integers of others may equal any
    address.
    """
    may = np.ones(count, bool)
    for symbol in elf.symbols:
        first = (symbol.address - at) // 4
        last = first + symbol.size // 4
        if symbol.code or first < 0 or last > count:
            continue
        here = may[first:last]
        if symbol.name.endswith("_steps"):
            here[np.arange(len(here)) % (STEP_BYTES // 4) != 0] = False
        elif not symbol.name.endswith("_model"):
            here[:] = False
    return may


def _usages(folder: Path) -> dict[str, int]:
    """Function -> bytes, from all .su files; of equal names the largest.

    Errors  BuildError for a frame whose size is not known when it is compiled
    """
    found: dict[str, int] = {}
    for path in sorted(folder.glob("*.su")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            place, bytes_, kind = line.split("\t")[:3]
            name = place.rpartition(":")[2]
            if kind == "dynamic":
                raise BuildError(place, "its stack frame has no fixed size")
            found[name] = max(found.get(name, 0), int(bytes_))
    return found


def _functions(elf: Elf, usages: Mapping[str, int], arch: str) -> dict[str, _Function]:
    code = [s for s in elf.symbols if s.code]
    starts = {s.address: s.name for s in reversed(code)}
    data = data_marks(elf)
    made = {}
    for symbol in code:
        pieces = [*code_pieces(elf, symbol, data)]
        seen = [f for at, piece in pieces for f in flows(arch, piece, at)]
        pushed = sum(f.value for f in seen if f.kind == "push")
        inside = range(symbol.address, symbol.address + max(symbol.size, 1))
        calls = {
            starts[f.value]
            for f in seen
            if f.kind == "call" and f.value in starts and f.value not in inside
        }
        frame = usages.get(symbol.name, usages.get(symbol.name.partition(".")[0]))
        frame = pushed if frame is None else frame
        made[symbol.name] = _Function(
            frame + (_of_vectors(symbol.name, pieces) if arch == "riscv" else 0),
            frozenset(calls),
            any(f.kind == "indirect" for f in seen),
        )
    return made


def _of_vectors(name: str, pieces: Iterable[tuple[int, bytes]]) -> int:
    """Bytes of a frame for vectors, whatever the length of a register.

    Errors  BuildError for a frame without a known size
    """
    found = vector_bytes(b"".join(piece for _, piece in pieces))
    if found is None:
        raise BuildError(name, "its stack frame has no fixed size")
    return found


def data_marks(elf: Elf) -> list[tuple[int, bool]]:
    """The addresses at which code ($t, $x) and data ($d) begin."""
    marks = {"$t": False, "$x": False, "$d": True}
    found = {
        s.address & ~1: marks[s.name[:2]] for s in elf.symbols if s.name[:2] in marks
    }
    return sorted(found.items())


def code_pieces(
    elf: Elf, symbol: Symbol, marks: list[tuple[int, bool]]
) -> Iterable[tuple[int, bytes]]:
    """The code of a function without the data in it."""
    segment = next(
        (
            s
            for s in elf.segments
            if s.address <= symbol.address < s.address + len(s.data)
        ),
        None,
    )
    if segment is None:
        return
    at, end = symbol.address, symbol.address + symbol.size
    index = bisect.bisect_right(marks, (at, True)) - 1
    is_data = marks[index][1] if index >= 0 else False
    while at < end:
        index += 1
        until = min(end, marks[index][0]) if index < len(marks) else end
        if not is_data and until > at:
            yield at, segment.data[at - segment.address : until - segment.address]
        if index < len(marks):
            is_data = marks[index][1]
        at = max(until, at)
        if index >= len(marks):
            break
