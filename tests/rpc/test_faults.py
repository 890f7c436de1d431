"""Calls on lines that do harm, to boards that are reset: each ends in the right answer
or in an error that says what happened, and none takes for ever."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from pybuild.host.abi import errors
from pybuild.rpc.board import Board
from pybuild.rpc.calls import Number, call
from pybuild.rpc.frame import Decoder, Frame, encode
from pybuild.rpc.line import RemoteError
from pybuild.rpc.link import BoardReset, Call, Link, RemoteTimeout
from pybuild.rpc.net import RemoteNet
from tests.rpc.lines import DIGITS, Harm, HarmedLine, Host, HostLine, library

ALONE = [
    Harm(flip=2e-3), Harm(drop=2e-3), Harm(repeat=2e-3), Harm(delay=2e-3),
    Harm(reset=3e-4),
]  # fmt: skip
ALL = Harm(flip=5e-4, drop=5e-4, repeat=5e-4, delay=5e-4, reset=2e-5)


class Counting(Link):
    """Counts calls."""

    calls = 0

    def _answers(self, calls, takes):
        self.calls += len(calls)
        return super()._answers(calls, takes)


def session(harm: Harm, calls: int, seed: int, waits: int = 0) -> Counter[str]:
    """So many calls, whose answers are compared with those of this machine."""
    host = Host(library(), waits)
    line = HarmedLine(HostLine(host), harm, seed)
    link, local = Counting(line), library().host()
    chance, net = np.random.default_rng(seed), None
    ends: Counter[str] = Counter()
    while link.calls < calls:
        image = chance.integers(-128, 128, (1, 8, 8, 1), np.int8)
        local.run(image=image)
        try:
            net = net or RemoteNet(Board(link, simulated=False), library().plan)
            net.set_input("image", image)
            net.go()
            right = np.array_equal(net.get_output(0), local.get_output(0))
            ends["right" if right else "wrong"] += 1
        except RemoteError as error:
            ends[type(error).__name__] += 1
            net = None
    assert line._line.now < calls  # seconds; nothing waits for long
    return ends + Counter({k: n for k, n in line.done.items() if n})


def test_ten_thousand_calls() -> None:
    ends = session(ALL, 10_000, seed=1)
    assert ends["wrong"] == 0
    assert ends["right"] > 3000
    assert min(ends["flip"], ends["drop"], ends["repeat"], ends["delay"]) > 300
    assert 0 < ends["BoardReset"] <= ends["reset"]
    assert ends["RemoteTimeout"] <= 3


@pytest.mark.parametrize("harm", ALONE, ids=str)
def test_each_harm_by_itself(harm: Harm) -> None:
    ends = session(harm, 300, seed=2)
    assert ends["wrong"] == 0 and ends["right"] > 50
    assert bool(ends["BoardReset"]) == bool(harm.reset)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(10))
def test_many_sessions(seed: int) -> None:
    worse = Harm(flip=1e-3, drop=1e-3, repeat=1e-3, delay=1e-3, reset=1e-4)
    assert session(worse, 10_000, seed, waits=(seed % 3) * 400)["wrong"] == 0


# ---- frames --------------------------------------------------------------------


def test_frames_arrive_among_garbage() -> None:
    chance = random.Random(1)
    for _ in range(500):
        frames, stream = [], b""
        for _ in range(chance.randrange(5)):
            kind, *numbers = chance.randrange(256), *chance.choices(range(2**32), k=2)
            data = chance.randbytes(chance.choice((0, 1, 9, 80)))
            frames.append(Frame(kind, *numbers, data))
            noise = chance.randbytes(chance.randrange(9)).replace(b"\x7e", b"")
            stream += noise + encode(frames[-1])
        at = chance.randrange(len(stream) + 1)
        decoder = Decoder()
        found = [*decoder.feed(stream[:at]), *decoder.feed(stream[at:])]
        assert found == frames


def test_garbage_is_no_frame() -> None:
    chance = random.Random(2)
    for size in range(400):
        assert not list(Decoder().feed(chance.randbytes(size)))


def test_the_line_of_the_protocol() -> None:
    made = encode(Frame(3, 0x7E7D1113, 5, b"\xab\xcd"))
    text = (DIGITS.parents[2] / "docs" / "rpc-protocol.md").read_text()
    shown = next(line for line in text.splitlines() if line.startswith("7E 03"))
    assert made.startswith(bytes.fromhex(shown.split(" + ")[0]))


def test_nothing_endless_is_kept() -> None:
    decoder = Decoder()
    for _ in range(300):
        assert not list(decoder.feed(b"\x7e" + b"a" * 999 + b"b" * 99_000))
    assert len(decoder._kept) < 200_000


# ---- sessions ------------------------------------------------------------------


def link_to(host: Host, **options) -> Link:
    return Link(HostLine(host), **options)


def test_a_line_without_a_board() -> None:
    class Dead(HostLine):
        def write(self, data: bytes) -> None:
            pass

    line = Dead(Host(library()))
    with pytest.raises(RemoteTimeout, match=r"^host: no board answers$"):
        Link(line, patience=2).hello()
    assert 2 <= line.now < 3.1


def test_a_board_that_falls_silent() -> None:
    host = Host(library())
    link = link_to(host, patience=2)
    link.hello()
    link.line.write = lambda data: None
    start = link.line.clock()
    wanted = r"^host: no answer for 12 seconds, where 1 were expected$"
    with pytest.raises(RemoteTimeout, match=wanted):
        link.call(call(Number.TICKS), takes=1)
    assert 12 <= link.line.clock() - start < 13.1
    with pytest.raises(RemoteTimeout, match=wanted):  # it is not tried again
        link.call(call(Number.TICKS))


def test_a_reset_is_said_and_a_new_session_works() -> None:
    host = Host(library())
    link = link_to(host)
    link.hello()
    host.reset()
    text = r"^host: the board was reset: what was on it is gone$"
    for _ in range(2):
        with pytest.raises(BoardReset, match=text):
            link.call(call(Number.TICKS))
    link.hello()
    assert link.call(call(Number.ECHO, data=b"\0\x7e\x7d")).data == b"\0\x7e\x7d"


def test_another_session_ends_the_first() -> None:
    """A host that was reset begins anew; the objects of before are gone."""
    host = Host(library())
    first, second = link_to(host), link_to(host)
    first.hello()
    number = first.value(call(Number.ALLOCATE, 100))
    second.hello()
    with pytest.raises(errors()[-5]):
        second.value(call(Number.RELEASE, number))
    with pytest.raises(BoardReset):
        first.call(call(Number.TICKS))


def test_another_version_is_said() -> None:
    host = Host(library())
    link = link_to(host)
    line = link.line
    read = line.read

    def older(timeout: float) -> bytes:
        frames = Decoder().feed(b"\x7e" + read(timeout))
        changed = (
            Frame(f.kind, f.session, 0, (9).to_bytes(4, "little") + f.data[4:])
            for f in frames
        )
        return b"".join(map(encode, changed))

    line.read = older
    wanted = r"^host: the board speaks version 9 of the protocol, not 1$"
    with pytest.raises(RemoteError, match=wanted):
        link.hello()


def test_a_call_that_was_broken_off_spoils_no_other() -> None:
    link = link_to(Host(library()))
    link.hello()
    read, link.line.read = link.line.read, None  # as by Ctrl-C
    with pytest.raises(TypeError):
        link.call(call(Number.TICKS))
    link.line.read = read
    with pytest.raises(RemoteError, match=r"^host: a call was broken off$"):
        link.call(call(Number.TICKS))
    link.hello()
    assert link.call(call(Number.TICKS)).status == 0


def test_calls_that_the_board_does_not_know() -> None:
    link = link_to(Host(library()))
    with pytest.raises(errors()[-31]):
        link.value(Call((99,)))
    assert link.call(call(Number.TICKS)).status == 0


def test_text_for_people_is_in_its_own_channel() -> None:
    host = Host(library())
    link = link_to(host)
    said: list[str] = []
    link.on_log = said.append
    link.hello()
    host.log("warm")
    host.log("warmer")
    assert link.call(call(Number.TICKS)).status == 0
    assert said == ["warm", "warmer"]
    host.log("lost")
    host.feed(b"")
    host.log("hot")
    assert link.call(call(Number.TICKS)).status == 0
    assert said[2:] == ["(1 lines are lost)", "hot"]


class Trips(HostLine):
    """Counts the frames that are sent before the next answer is waited for."""

    sent = most = 0

    def write(self, data: bytes) -> None:
        self.sent += 1
        super().write(data)

    def read(self, timeout: float) -> bytes:
        self.most, self.sent = max(self.most, self.sent), 0
        return super().read(timeout)


@pytest.mark.parametrize(("waits", "least"), [(0, 1), (4000, 3)])
def test_calls_are_on_the_way_where_the_board_has_room(waits: int, least: int) -> None:
    line = Trips(Host(library(), waits))
    board = Board(Link(line), simulated=False)
    buffer = board.allocate(20_000)
    data = bytes(range(256)) * 70
    board.write(buffer, 0, data)
    assert line.most == least if least == 1 else line.most >= least
    assert board.read(buffer, 0, len(data)) == data


@pytest.mark.parametrize("waits", [0, 4000])
def test_long_transfers_on_damaged_lines(waits: int) -> None:
    """Answers are lost among others that are on the way: pieces are asked for again."""
    harm = Harm(flip=2e-4, drop=2e-4, repeat=2e-4, delay=2e-4)
    line = HarmedLine(HostLine(Host(library(), waits)), harm, seed=3)
    board = Board(Link(line), simulated=False)
    buffer, chance = board.allocate(9000), random.Random(4)
    for _ in range(20):
        data = chance.randbytes(9000)
        board.write(buffer, 0, data)
        assert board.read(buffer, 0, len(data)) == data
    assert sum(line.done.values()) > 50
