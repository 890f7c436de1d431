"""A line with a key: who has it is served; somebody between the two sides can cut the
line, and nothing else."""

from __future__ import annotations

import ctypes
import hashlib
import hmac
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybuild import rpc
from pybuild.cli import main
from pybuild.errors import BuildError, UsageError
from pybuild.host.abi import CrtError
from pybuild.host.cc import compile_shared
from pybuild.rpc import RemoteError
from pybuild.rpc.calls import Number, call
from pybuild.rpc.frame import Decoder, Frame, Kind, encode
from pybuild.rpc.key import Key, key_from, key_in
from pybuild.rpc.link import Call, Link
from pybuild.rpc.remote import Wired
from tests.rpc.lines import DIGITS, Host, HostLine, library
from tests.toolchains import INCLUDE, ROOT, require, run

SECRET = bytes(range(32))
KEY = Key(SECRET)
IMAGE = np.arange(-32, 32, dtype=np.int8).reshape(1, 8, 8, 1)
Middle = Callable[[Frame], Iterable[Frame]]


class Between(HostLine):
    """Somebody who reads and writes every frame, each way; makes checksums true."""

    def __init__(self, key: bytes = SECRET) -> None:
        super().__init__(Host(library(), key=key))
        self.to_board: Middle = lambda frame: (frame,)
        self.to_host: Middle = lambda frame: (frame,)
        self.recorded: list[Frame] = []
        self._ways = Decoder(), Decoder()

    def write(self, data: bytes) -> None:
        for frame in self._ways[0].feed(data):
            self.recorded.append(frame)
            for other in self.to_board(frame):
                super().write(encode(other))

    def read(self, timeout: float) -> bytes:
        frames = self._ways[1].feed(super().read(timeout))
        return b"".join(encode(f) for frame in frames for f in self.to_host(frame))


def wanted() -> np.ndarray:
    return library().host().run(image=IMAGE)["scores"]


def scores(board: Wired) -> np.ndarray:
    _, net = board.instance(library())
    net.set_input("image", IMAGE)
    net.go()
    return net.get_output(0)


# ---- tags --------------------------------------------------------------------


def test_crt_computes_what_hashlib_does(tmp_path: Path) -> None:
    """Of every length that begins or ends in another block."""
    file = tmp_path / "hmac.so"
    source = str(ROOT / "crt" / "src" / "hmac.c")
    compile_shared([source], [], file, ("-std=c99", "-O1", "-fPIC", "-shared"))
    lib, made = ctypes.CDLL(str(file)), ctypes.create_string_buffer(32)
    chance = random.Random(0)
    for size in (*range(200), 1000, 65535):
        key, head = chance.randbytes(32), chance.randbytes(12)
        data = chance.randbytes(size)
        lib.crt_hmac_sha256(key, head, 12, data, size, made)
        assert made.raw == hmac.digest(key, head + data, "sha256"), size
    before = made.raw
    lib.crt_hmac_sha256(made, b"", 0, b"abc", 3, made)  # the result where the key was
    assert made.raw == hmac.digest(before, b"abc", "sha256")


COUNTED = """#include "crt/hmac.h"
int main(int count, char **words)
{
    uint8_t key[32], data[300], made[32];
    uint32_t i, x = (uint32_t)words[count - 1][0];
    for (i = 0; i < 300; i++) {
        x = x * 1664525u + 1013904223u;
        key[i % 32u] = (uint8_t)(x >> 24);
        data[i] = (uint8_t)(x >> 16);
    }
    crt_hmac_sha256(key, data, 12, data + 12, 288, made);
    return 0;
}
"""


# @req crt_hmac_sha256:Thread, crt_hmac_sha256:Time
def test_no_branch_depends_on_a_byte(tmp_path: Path) -> None:
    """Each line and branch is gone through as often for other keys and data; nothing
    is kept from call to call."""
    (tmp_path / "main.c").write_text(COUNTED)
    source = ROOT / "crt" / "src" / "hmac.c"
    build = [require("gcc"), "-std=c99", "--coverage", "-I", INCLUDE]
    run([*build, "-c", source, tmp_path / "main.c"], cwd=tmp_path)
    run([*build, "hmac.o", "main.o", "-o", "counted"], cwd=tmp_path)
    found = set()
    for word in "abc":
        run([tmp_path / "counted", word])
        said = run([require("gcov"), "-b", "-c", "-t", tmp_path / "hmac.gcda"])
        found.add(said.partition("Runs:")[2])
        (tmp_path / "hmac.gcda").unlink()
    assert len(found) == 1 and "branch" in found.pop()
    run([require("gcc"), "-c", "-I", INCLUDE, source, "-o", tmp_path / "plain.o"])
    symbols = run(["nm", tmp_path / "plain.o"]).splitlines()
    kinds = {line.split()[-2] for line in symbols}
    assert kinds <= {"T", "t", "r", "U"}


def test_a_board_with_the_key_is_served() -> None:
    with Wired("host", Between(), 5.0, KEY) as board:
        np.testing.assert_array_equal(scores(board), wanted())
        assert board.board.welcome.most == 512
        assert board.board.welcome.library.startswith("digits")
    assert repr(KEY) == "Key()"


def test_without_a_key_frames_are_what_they_were() -> None:
    line = Between(b"")
    link = Link(line)
    link.hello()
    link.call(Call((0,), b"abcd", 4))
    hello, first, echo = line.recorded
    assert (hello.kind, hello.sequence, hello.data) == (Kind.HELLO, 0, b"")
    assert first.data == bytes(4) and echo.data == bytes(4) + b"abcd"
    assert link.welcome is not None and link.welcome.version == 1


# ---- who has no key, or another ----------------------------------------------


@pytest.mark.parametrize(
    ("board", "host", "text"),
    [
        (SECRET, None, "serves only who has its key: give --key-file, or key_file="),
        (b"", KEY, "has no key, so that anybody could be at the other end"),
        (SECRET, Key(SECRET[::-1]), "has another key, or what it says is changed"),
    ],
)  # fmt: skip
def test_what_does_not_match_is_told(board: bytes, host: Key | None, text: str) -> None:
    line = Between(board)
    with pytest.raises(RemoteError, match=f"^host: the board {text}"):
        Link(line, key=host).hello()
    assert line.now < 3 and line.host.objects() == 0


def test_who_has_no_key_learns_nothing_of_the_board() -> None:
    host = Host(library(), key=SECRET)
    said = host.feed(encode(Frame(Kind.HELLO, 5, 0)) * 2)
    for frame in Decoder().feed(said):
        assert frame.session == 0 and len(frame.data) == 32
        assert not any(frame.data[4:28])
    for session in (0, 1, frame.session):
        asked = Frame(Kind.CALL, session, 1, call(Number.CREATE).pack())
        said = host.feed(encode(asked))
        assert [f.kind for f in Decoder().feed(said)] == [Kind.LOST]
    assert host.objects() == 0


def test_a_single_false_welcome_ends_nothing() -> None:
    line = Between()
    false = iter([1, 2])

    def both(frame: Frame) -> Iterable[Frame]:
        if frame.kind == Kind.WELCOME and next(false, 0):
            older = (1).to_bytes(4, "little") + frame.data[4:]
            return replace(frame, data=older), frame
        return (frame,)

    line.to_host = both
    with Wired("host", line, 5.0, KEY) as board:
        np.testing.assert_array_equal(scores(board), wanted())


def test_a_line_that_takes_the_key_away_is_refused() -> None:
    """A hello without what the host has put in, and a welcome as of no key."""
    line, plain = Between(), Host(library())
    line.to_board = lambda frame: (replace(frame, data=b""),)
    with pytest.raises(RemoteError, match=r"^host: the board has another key"):
        Link(line, key=KEY).hello()
    line = Between()
    line.host = plain
    with pytest.raises(RemoteError, match=r"^host: the board has no key"):
        Link(line, key=KEY).hello()


# ---- somebody between --------------------------------------------------------


def test_what_was_recorded_does_nothing() -> None:
    line = Between()
    with Wired("host", line, 5.0, KEY) as board:
        scores(board)
        recorded = list(line.recorded)
        before = line.host.objects()
        for frame in recorded:  # in the session itself: answers, but nothing is done
            line.host.feed(encode(frame))
        assert line.host.objects() == before
    line.host.reset()
    with Wired("host", line, 5.0, KEY) as board:
        scores(board)
        before = line.host.objects()
        for frame in recorded:  # in another one
            line.host.feed(encode(frame))
        assert line.host.objects() == before
        np.testing.assert_array_equal(scores(board), wanted())
    line.host.reset()
    for _ in range(2):  # in none
        for frame in recorded:
            line.host.feed(encode(frame))
    assert line.host.objects() == 0


def test_calls_are_done_in_their_order() -> None:
    """Later calls before earlier ones, and answers of other calls."""
    held: list[Frame] = []
    line = Between()

    def swapped(frame: Frame) -> Iterable[Frame]:
        if frame.kind != Kind.CALL:
            return (frame,)
        held.append(frame)
        return held[::-1][:4]

    line.to_board = line.to_host = swapped
    with Wired("host", line, 5.0, KEY) as board:
        np.testing.assert_array_equal(scores(board), wanted())


def test_logs_are_the_board_s_and_each_is_heard_once() -> None:
    line, said = Between(), []
    link = Link(line, key=KEY)
    link.on_log = said.append
    link.hello()
    line.to_host = lambda frame: (
        (frame, frame, replace(frame, data=b"x" + frame.data[1:]))
        if frame.kind == Kind.LOG
        else (frame,)
    )
    line.host.log("one")
    link.call(call(Number.TICKS))
    line.host.feed(b"")
    line.to_host = lambda frame: (Frame(Kind.LOG, frame.session, 9, b"mine"), frame)
    link.call(call(Number.TICKS))
    assert said == ["one"]


def _harmed(chance: random.Random, kept: list[Frame]) -> Middle:
    """Frames are changed, cut, held back, said again or made up, once in ten."""

    def harm(frame: Frame) -> Iterable[Frame]:
        kept.append(frame)
        if chance.random() > 0.1:
            return (frame,)
        data = bytearray(frame.data)
        match chance.randrange(7):
            case 0 if data:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            case 1:
                data = data[: chance.randrange(len(data) + 1)]
            case 2:
                data += chance.randbytes(chance.choice((1, 16)))
            case 3:
                return (replace(frame, sequence=frame.sequence + 1), frame)
            case 4:
                return (chance.choice(kept), frame)
            case 5:
                return (replace(frame, kind=chance.randrange(3, 7)), frame)
            case 6:
                return ()
        return (replace(frame, data=bytes(data)),)

    return harm


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.sweep)
                                       for s in range(1, 20))])  # fmt: skip
def test_whatever_is_changed_no_answer_is_wrong(seed: int) -> None:
    chance, ends = random.Random(seed), Counter[str]()
    line = Between()
    kept: list[Frame] = []
    right = wanted()
    for _ in range(100):
        line.to_board = line.to_host = _harmed(chance, kept)
        try:
            with Wired("host", line, 2.0, KEY) as board:
                np.testing.assert_array_equal(scores(board), right)
            ends["right"] += 1
        except (RemoteError, CrtError) as error:
            assert isinstance(error, RemoteError), error
            ends["refused"] += 1
        del kept[:-200]
    assert ends["right"] > 50, ends


def test_numbers_of_calls_do_not_begin_anew() -> None:
    link = Link(Between(), key=KEY)
    link.hello()
    link._sequence = 0xFFFFFFFF
    with pytest.raises(RemoteError, match=r"^host: connect again: all numbers"):
        link.call(call(Number.TICKS))


# ---- files -------------------------------------------------------------------


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "board.key"
    path.write_text(SECRET.hex() + "\n")
    return path


def test_a_key_is_read_from_a_file(
    key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CRT_KEY_FILE", raising=False)
    assert key_in(key_file) == KEY
    assert key_from(None) is None
    monkeypatch.setenv("CRT_KEY_FILE", str(key_file))
    assert key_from(None) == KEY
    other = key_file.with_name("other.key")
    other.write_text(hashlib.sha256(b"").hexdigest().upper())
    assert key_from(other) == Key(hashlib.sha256(b"").digest())


@pytest.mark.parametrize("text", [b"", b"sesame", b"00" * 31, b"00" * 33, b"\xff" * 64])
def test_what_is_no_key_is_not_printed(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.key"
    path.write_bytes(text)
    with pytest.raises(UsageError, match="is not a key of 64 hexadecimal") as raised:
        key_in(path)
    assert not text or text.decode(errors="replace") not in str(raised.value)
    with pytest.raises(UsageError, match=r"none\.key: cannot be read \(No such"):
        key_in(tmp_path / "none.key")


def test_the_options_of_connect_check_and_bench(
    key_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BuildError, match=r"^--key-file: is for a board at the end"):
        rpc.connect("qemu:mps2-an386", key_file=key_file)
    assert main(["check", str(DIGITS), "--key-file", str(key_file)]) == 64
    assert "--key-file: cannot be combined with --on host" in capsys.readouterr().err
    where = listening(Host(library(), key=SECRET))
    told = ["--input", "keep", "--port", where, "--json"]
    for verb, count in (("check", "--samples"), ("bench", "--runs")):
        words = [verb, str(DIGITS), *told, count, "2"]
        assert main([*words, "--key-file", str(key_file)]) == 0
        assert main(words) == 2
        assert f"{where}: the board serves only who has" in capsys.readouterr().err
        monkeypatch.setenv("CRT_KEY_FILE", str(key_file))
        assert main(words) == 0
        monkeypatch.delenv("CRT_KEY_FILE")
        capsys.readouterr()


def test_who_is_refused_leaves_the_line_to_the_next(key_file: Path) -> None:
    where = listening(Host(library(), key=SECRET))
    with pytest.raises(RemoteError) as held:
        rpc.connect(where)
    rpc.connect(where, patience=5, key_file=key_file).close()
    assert "serves only who has" in str(held.value)


def listening(host: Host) -> str:
    """Where a board is, of one connection after the other."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            there, _ = server.accept()
            while data := there.recv(4096):
                there.sendall(host.feed(data))

    threading.Thread(target=serve, daemon=True).start()
    return f"tcp:127.0.0.1:{server.getsockname()[1]}"
