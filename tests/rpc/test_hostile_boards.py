"""A board that lies: whatever it answers, a call ends in time, in an answer of the
length that it must have or in an error of this project."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest

from pybuild.errors import BuildError
from pybuild.host.abi import CrtError
from pybuild.package.report import layers
from pybuild.rpc import link as links
from pybuild.rpc.board import Board
from pybuild.rpc.calls import Number, call, reads
from pybuild.rpc.frame import Decoder, Frame, Kind, encode
from pybuild.rpc.line import RemoteError
from pybuild.rpc.link import Link, RemoteTimeout
from pybuild.rpc.net import RemoteNet
from pybuild.rpc.remote import Wired
from tests.rpc.lines import Host, HostLine, library

Lie = Callable[[Frame], Iterable[Frame]]


class Lying(HostLine):
    """What the board says goes through `lie`."""

    def __init__(self, lie: Lie) -> None:
        super().__init__(Host(library()))
        self.lie, self._decoder, self.written = lie, Decoder(), 0

    def write(self, data: bytes) -> None:
        self.written += len(data)
        super().write(data)

    def read(self, timeout: float) -> bytes:
        frames = self._decoder.feed(super().read(timeout))
        return b"".join(encode(f) for frame in frames for f in self.lie(frame))


def welcome(at: int, word: int) -> Lie:
    """Says this word of itself."""

    def lie(frame: Frame) -> Iterable[Frame]:
        if frame.kind == Kind.WELCOME:
            data = frame.data[:at] + word.to_bytes(4, "little") + frame.data[at + 4 :]
            frame = replace(frame, data=data)
        return (frame,)

    return lie


def net_of(link: Link) -> RemoteNet:
    return RemoteNet(Board(link, simulated=False), library().plan)


IMAGE = np.arange(64, dtype=np.int8).reshape(1, 8, 8, 1)


@pytest.mark.parametrize("most", [0, 1, 4, 12, 20, 127, 65536, 2**32 - 1])
def test_frames_of_no_board(most: int) -> None:
    wanted = rf"^host: the board's frames hold {most} bytes, where a board's hold 128 "
    with pytest.raises(RemoteError, match=wanted):
        Link(Lying(welcome(4, most))).hello()


def test_a_board_that_says_it_keeps_everything_is_not_sent_everything() -> None:
    def lie(frame: Frame) -> Iterable[Frame]:
        silent = frame.kind == Kind.REPLY and frame.sequence > 1
        return () if silent else welcome(8, 2**32 - 1)(frame)

    line = Lying(lie)
    board = Board(Link(line, patience=0.01), simulated=False)
    with pytest.raises(RemoteTimeout):
        board.write(0, 0, bytes(1 << 24))
    assert 100_000 < line.written < 4 << 20


def test_a_slow_counter_makes_no_endless_wait() -> None:
    line = Lying(welcome(12, 1))
    net = net_of(Link(line, patience=2))
    macs = sum(row.macs for row in layers(library().plan.graph))
    assert net._takes <= 2e-4 * max(macs, 1000)
    net.set_input("image", IMAGE)
    line.lie = lambda frame: ()
    start = line.clock()
    with pytest.raises(RemoteTimeout):
        net.go()
    assert line.clock() - start < 3 + 10 * net._takes


def test_what_a_board_says_is_not_obeyed_by_a_terminal() -> None:
    host, said = Host(library(), board="\x1b]0;mine\x07\u202e"), []
    line = HostLine(host)
    link = Link(line)
    link.on_log = said.append
    net_of(link)
    host.log("\x1b[2J\r\nall is well\u202e")
    link.call(call(Number.TICKS))
    assert said == [r"\x1b[2J\r\nall is well\u202e"]
    assert link.welcome is not None and link.welcome.board == r"\x1b]0;mine\x07\u202e"


@pytest.mark.parametrize("more", [-1, 1, 4000])
@pytest.mark.parametrize(
    "asked",
    [call(Number.TICKS), call(Number.ECHO, data=b"abcd"), call(Number.ALLOCATE, 64),
     *reads(0, 0, 32, 128)],
    ids=lambda asked: Number(asked.words[0]).name,
)  # fmt: skip
def test_an_answer_of_another_length(asked: links.Call, more: int) -> None:
    link = Link(Lying(lambda frame: (frame,)))
    link.hello()
    number = link.value(call(Number.ALLOCATE, 64))
    words = (asked.words[0], number, *asked.words[2:])
    asked = replace(asked, words=words if len(asked.words) > 2 else asked.words)

    def lie(frame: Frame) -> Iterable[Frame]:
        data = frame.data[: 4 + asked.gives]
        data = data[: len(data) + more] if more < 0 else data + bytes(more)
        return () if len(data) < 4 else (replace(frame, data=data),)

    link.line.lie = lie
    wanted = "answers call|no answer" if not asked.gives else "answers call"
    with pytest.raises(RemoteError, match=wanted):
        link.call(asked)


def test_an_error_that_crt_does_not_have() -> None:
    def lie(frame: Frame) -> Iterable[Frame]:
        if frame.kind == Kind.REPLY and frame.sequence > 1:
            code = (-12345).to_bytes(4, "little", signed=True)
            frame = replace(frame, data=code)
        return (frame,)

    board = Board(Link(Lying(lie)), simulated=False)
    for ask in (lambda: board.allocate(9), lambda: board.value(Number.CREATE)):
        with pytest.raises(CrtError):
            ask()


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.sweep)
                                       for s in range(1, 20))])  # fmt: skip
def test_whatever_it_answers(seed: int) -> None:
    chance, ends = random.Random(seed), Counter[str]()

    def lie(frame: Frame) -> Iterable[Frame]:
        if chance.random() > 0.05:
            return (frame,)
        data = bytearray(frame.data)
        match chance.randrange(6):
            case 0:
                data = data[: chance.randrange(len(data) + 1)]
            case 1:
                data += chance.randbytes(chance.choice((1, 4, 500)))
            case 2 if data:
                at = chance.randrange(len(data))
                data[at : at + 4] = chance.choice((b"\0" * 4, b"\xff" * 4))
            case 3 if data:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            case 4:
                return (replace(frame, kind=chance.randrange(1, 8)), frame)
            case 5:
                return (replace(frame, sequence=chance.randrange(9)), frame)
        return (replace(frame, data=bytes(data)),)

    for _ in range(150):
        line = Lying(lie)
        try:
            with Wired("host", line, 2.0) as board:
                _, net = board.instance(library())
                net.set_input("image", IMAGE)
                net.go()
                assert net.get_output(0).shape == (1, 10)
                assert board.board.hz > 0
            ends["answered"] += 1
        except (RemoteError, CrtError, BuildError, ValueError) as error:
            assert str(error).isprintable()
            ends[type(error).__name__] += 1
        assert line.now < 400
    assert min(ends["answered"], ends["RemoteError"]) > 5, ends
