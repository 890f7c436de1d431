"""A server on this machine, and lines that do harm, for tests: time is made up, so
that nothing waits.
"""

from __future__ import annotations

import ctypes
import functools
import random
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pybuild
from pybuild.host.cc import compile_shared
from pybuild.rpc.line import Line
from pybuild.rpc.remote import Wired, content_of
from tests.toolchains import ROOT

HERE = Path(__file__).resolve().parent
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
_QUEUE = 1 << 18


@functools.cache
def library(path: Path = DIGITS, **options: Any) -> pybuild.Library:
    """For this machine, but not marked so: what a board may serve."""
    chosen = {"target": "generic", "input": "keep", **options}
    return pybuild.load(path).build(**chosen)


@functools.cache
def _server() -> bytes:
    """host.c, compiled."""
    with tempfile.TemporaryDirectory(prefix="crt-") as folder:
        file = Path(folder) / "host.so"
        files = [str(HERE / "host.c"), *map(str, (ROOT / "crt" / "src").glob("*.c"))]
        compile_shared(files, [], file, ("-std=c99", "-O2", "-fPIC", "-shared"))
        return file.read_bytes()


class Host:
    """A board: the C server in this process, with a model of the host's kernels.

    key  that of its line; each start draws what is said of it anew
    """

    def __init__(
        self,
        served: pybuild.Library,
        waits: int = 0,
        board: str = "host",
        key: bytes = b"",
    ) -> None:
        self._key = key
        self._folder = tempfile.TemporaryDirectory(prefix="crt-")
        file = Path(self._folder.name) / "host.so"  # a copy: it has variables
        file.write_bytes(_server())
        self._lib = ctypes.CDLL(str(file))
        self._code = served.code()
        texts = content_of(served), board
        self._texts = [ctypes.create_string_buffer(text.encode()) for text in texts]
        self._waits = waits
        self._out = ctypes.create_string_buffer(_QUEUE)
        self.reset()

    def reset(self) -> None:
        if self._key:
            self._lib.host_key(self._key, secrets.token_bytes(16))
        model = ctypes.c_void_p(self._code.model)
        assert self._lib.host_start(model, *self._texts, self._waits) == 0

    def log(self, text: str) -> None:
        self._lib.host_log(ctypes.c_char_p(text.encode()))

    def objects(self) -> int:
        """Buffers, images and instances that it has."""
        return int(self._lib.host_objects())

    def feed(self, data: bytes) -> bytes:
        """What it says to this."""
        self._lib.host_feed(data, len(data))
        count = self._lib.host_take(self._out)
        return ctypes.string_at(self._out, count)


class HostLine:
    """To a Host; a wait takes no time."""

    name = "host"
    seconds_per_byte = 0.0
    shortest_pause = 0.02

    def __init__(self, host: Host) -> None:
        self.host = host
        self.now = 0.0
        self._there = b""

    def clock(self) -> float:
        self.now += 1e-5
        return self.now

    def write(self, data: bytes) -> None:
        self._there += self.host.feed(data)

    def read(self, timeout: float) -> bytes:
        self._there += self.host.feed(b"")  # what it says by itself
        data, self._there = self._there, b""
        self.now += 0 if data else timeout
        return data

    def close(self) -> None:
        self._there = b""


def board(served: pybuild.Library, line: Line | None = None, **options: Any) -> Wired:
    """A board on this machine, or on another line to one."""
    return Wired("host", line or HostLine(Host(served, **options)), 5.0)


@dataclass(frozen=True)
class Harm:
    """How often, for each byte that goes either way."""

    flip: float = 0
    drop: float = 0
    repeat: float = 0
    delay: float = 0
    reset: float = 0


class HarmedLine:
    """A line that flips bits, loses, repeats and delays runs of bytes, either way, and
    resets the board in the middle of something.
    """

    name = "harmed"
    seconds_per_byte = 0.0
    shortest_pause = 0.02

    def __init__(self, line: HostLine, harm: Harm, seed: int) -> None:
        self._line, self._harm = line, harm
        self._chance = random.Random(seed)
        self._held: list[tuple[float, Callable[[bytes], None], bytes]] = []
        self._there = b""
        self.done = dict.fromkeys(Harm.__dataclass_fields__, 0)
        self.clock, self.close = line.clock, line.close

    def write(self, data: bytes) -> None:
        self._release()
        for piece in self._harmed(data, self._pass):
            self._pass(piece)

    def _pass(self, data: bytes) -> None:
        """To the board, which may be reset on the way."""
        if self._happens("reset", len(data)):
            at = self._chance.randrange(len(data) + 1)
            self._line.write(data[:at])
            self._line.host.reset()
            data = data[at:]
        self._line.write(data)

    def read(self, timeout: float) -> bytes:
        self._release()
        data = self._line.read(0 if self._there else timeout)
        self._there += b"".join(self._harmed(data, self._keep))
        data, self._there = self._there, b""
        return data

    def _keep(self, data: bytes) -> None:
        self._there += data

    def _release(self) -> None:
        """What was held back and is due."""
        now = self._line.now
        due = [held for held in self._held if held[0] <= now]
        self._held = [held for held in self._held if held[0] > now]
        for _, pass_on, data in due:
            pass_on(data)

    def _happens(self, what: str, size: int) -> bool:
        happens = self._chance.random() < getattr(self._harm, what) * size
        self.done[what] += happens
        return happens

    def _harmed(self, data: bytes, later: Callable[[bytes], None]) -> list[bytes]:
        made = bytearray(data)
        chance = self._chance
        if made and self._happens("flip", len(made)):
            for _ in range(chance.choice((1, 1, 2, 9))):
                made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
        start, end = sorted(chance.randrange(len(made) + 1) for _ in range(2))
        if self._happens("drop", len(made)):
            del made[start : min(end, start + 40) + 1]
        elif self._happens("repeat", len(made)):
            made[start:start] = made[start:end]
        elif self._happens("delay", len(made)):
            if chance.random() < 0.5:  # a whole chunk: a frame that comes late
                start, end = 0, len(made)
            until = self._line.now + chance.choice((0.001, 0.05, 0.5, 3))
            self._held.append((until, later, bytes(made[start:end])))
            del made[start:end]
        return [bytes(made)]
