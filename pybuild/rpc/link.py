"""Calls that arrive once, on a line that loses bytes: docs/rpc-protocol.md.

Knows frames and sessions; of calls only that they have words, data and a status.
"""

from __future__ import annotations

import logging
import secrets
import struct
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pybuild.host.abi import check
from pybuild.rpc.frame import EXTRA, Decoder, Frame, Kind, encode
from pybuild.rpc.line import Line, RemoteError

VERSION = 1
_LOG = logging.getLogger("pybuild.rpc")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 1.0  # seconds before a call is sent again
_MOST_SLOWER = 32  # times as long a pause as the line seemed to need
_HELLOS = 20  # sessions that are asked for before it is given up
# data of a frame as crt/rpc.h has it; of a line's room no more is made use of
_LEAST_DATA, _MOST_DATA, _MOST_ROOM = 128, 65535, 1 << 20
_WELCOME = struct.Struct("<8I")


class BoardReset(RemoteError):
    """The board knows nothing of this session any more: it was reset."""


class RemoteTimeout(RemoteError):
    """The board has not answered within the time that the call may take."""


@dataclass(frozen=True)
class Welcome:
    """What a board says of itself; units: bytes, ticks a second (0: not known).

    most     data of a frame; waits: what it keeps while it deals with a frame
    library  name and content hash of what is in its flash
    """

    session: int
    version: int
    most: int
    waits: int
    hz: int
    memory: int
    objects: int
    has_ticks: bool
    library: str
    board: str


@dataclass(frozen=True)
class Call:
    """words: the number of the call first; gives: bytes of its answer."""

    words: tuple[int, ...]
    data: bytes = b""
    gives: int = 0

    def pack(self) -> bytes:
        return struct.pack(f"<{len(self.words)}I", *self.words) + self.data


@dataclass(frozen=True)
class Answer:
    status: int
    data: bytes


class Link:
    """One session after the other on a line.

    patience  seconds without an answer after which a call is given up
    ahead     bytes that the line keeps for a busy board, beside what it says itself
    Thread    one thread at a time
    Errors    RemoteTimeout; BoardReset; RemoteError where the line is gone; the link
              is then of no use until hello(). CRT_ERR_... for what the board refused
    """

    def __init__(self, line: Line, patience: float = 5.0, ahead: int = 0) -> None:
        self.line = line
        self.patience = patience
        self.ahead = ahead
        self.welcome: Welcome | None = None
        self.resent = 0  # calls that were sent more than once
        self.on_log: Callable[[str], object] = _LOG.info
        self._frames = Decoder()
        self._arrived: deque[Frame] = deque()
        self._sequence = 0
        self._logs = 0
        self._trip = _FIRST_PAUSE / 4  # seconds of a round trip, as it was lately
        self.slower = 1  # pauses are so many times longer, until one was long enough
        self._broken: RemoteError | None = None

    @property
    def dropped(self) -> int:
        """Frames that arrived damaged."""
        return self._frames.dropped

    def close(self, what: str) -> None:
        """Ends it for good; what: why, for who calls nevertheless."""
        self._broken = RemoteError(f"{self.line.name}: {what}")
        self.line.close()

    # ---- frames ---------------------------------------------------------------

    def _next(self, until: float) -> Frame | None:
        """The next frame that is not for people; None: none by then."""
        while True:
            while self._arrived:
                frame = self._arrived.popleft()
                if frame.kind != Kind.LOG:
                    return frame
                self._log(frame)
            left = until - self.line.clock()
            if left <= 0:
                return None
            self._arrived.extend(self._frames.feed(self.line.read(left)))

    def _log(self, frame: Frame) -> None:
        lost = frame.sequence - self._logs - 1
        if 0 < lost < 1 << 31:
            self.on_log(f"({lost} lines are lost)")
        self._logs = frame.sequence
        self.on_log(_text(frame.data))

    # ---- sessions -------------------------------------------------------------

    def hello(self) -> Welcome:
        """Begins a session; all that was on the board is gone.

        Errors  RemoteTimeout where nobody answers; RemoteError for another version
        """
        self._broken = None
        end = self.line.clock() + self.patience
        for _ in range(_HELLOS):
            welcome = self._welcomed(end)
            if welcome.version != VERSION:
                what = f"the board speaks version {welcome.version} of the protocol"
                raise RemoteError(f"{self.line.name}: {what}, not {VERSION}")
            if not _LEAST_DATA <= welcome.most <= _MOST_DATA:
                what = f"the board's frames hold {welcome.most} bytes, where a board's"
                what += f" hold {_LEAST_DATA} to {_MOST_DATA}"
                raise RemoteError(f"{self.line.name}: {what}")
            self.welcome, self._sequence, self._logs = welcome, 0, 0
            try:
                self.call(Call((0,)))
            except BoardReset:  # another hello came in between
                self._broken = None
                continue
            return welcome
        raise RemoteTimeout(f"{self.line.name}: every session is lost at once")

    def _welcomed(self, end: float) -> Welcome:
        nonce, pause = secrets.randbits(32), _FIRST_PAUSE
        while self.line.clock() < end:
            self.line.write(encode(Frame(Kind.HELLO, nonce, 0)))
            until = min(end, self.line.clock() + pause)
            while frame := self._next(until):
                found = _read_welcome(frame, nonce)
                if found is not None:
                    return found
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise RemoteTimeout(f"{self.line.name}: no board answers")

    # ---- calls ----------------------------------------------------------------

    def call(self, call: Call, takes: float = 0) -> Answer:
        """One call, done once.

        takes   seconds that the board is expected to need
        """
        (answer,) = self._answers([call], takes)
        return answer

    def value(self, call: Call) -> int:
        """The status of a call that must be good."""
        return check(self.call(call).status)

    def transfer(self, calls: Sequence[Call]) -> list[bytes]:
        """Calls that may be done again, some on the way at a time; their answers.

        Errors  that of the first one which the board refused
        """
        answers = self._answers(calls, 0)
        for answer in answers:
            check(answer.status)
        return [answer.data for answer in answers]

    def _answers(self, calls: Sequence[Call], takes: float) -> list[Answer]:
        if self._broken is not None:
            raise type(self._broken)(*self._broken.args)
        if self.welcome is None:
            self.hello()
        try:
            return _Exchange(self, calls, takes).run()
        except RemoteError as error:
            self._broken = error
            raise
        except BaseException:
            # half done: what is on the way would answer the next call
            self._broken = RemoteError(f"{self.line.name}: a call was broken off")
            raise

    def take(self, until: float) -> Frame | None:
        """The next frame of this session.

        Errors  BoardReset
        """
        assert self.welcome is not None
        while frame := self._next(until):
            if frame.session != self.welcome.session:
                continue
            if frame.kind == Kind.LOST:
                what = "the board was reset: what was on it is gone"
                raise BoardReset(f"{self.line.name}: {what}")
            if frame.kind in (Kind.REPLY, Kind.WORKING):
                return frame
        return None

    def number(self) -> int:
        """Of the next call."""
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        return self._sequence

    def measured(self, trip: float | None = None) -> float:
        """Seconds of a round trip, with the latest one."""
        if trip is not None:
            self._trip += (trip - self._trip) / 8
        return self._trip


class _Exchange:
    """Several calls at a time, sent again from the first that is missing."""

    def __init__(self, link: Link, calls: Sequence[Call], takes: float) -> None:
        assert link.welcome is not None
        self.link, self.line, self.welcome = link, link.line, link.welcome
        self.calls = calls
        self.takes = takes
        self.answers: dict[int, Answer] = {}
        self.left = deque(range(len(calls)))
        self.sent: dict[int, tuple[int, bytes]] = {}  # number -> which call, frame
        self.first_sent = 0.0
        self.again = False

    def run(self) -> list[Answer]:
        clock, allowed = self.line.clock, self.link.patience + 10 * self.takes
        progress, pause = clock(), self._pause()
        self._fill()
        until = clock() + pause
        while len(self.answers) < len(self.calls):
            frame = self.link.take(min(until, progress + allowed))
            if frame is not None and self._taken(frame):
                progress, pause = clock(), self._pause()
                self._fill()
                until = progress + pause
            elif frame is not None and frame.kind == Kind.WORKING:
                if frame.sequence in self.sent:  # the board does not listen now
                    pause = max(_LONGEST_PAUSE, self.takes / 4)
                    until = clock() + pause
            elif clock() >= progress + allowed:
                raise RemoteTimeout(self._too_long(allowed))
            elif clock() >= until:
                self._send_again()
                pause = max(pause, self._pause())
                until = clock() + pause
        return [self.answers[i] for i in range(len(self.calls))]

    def _too_long(self, allowed: float) -> str:
        what = f"no answer for {allowed:.3g} seconds"
        if self.takes:
            what += f", where {self.takes:.2g} were expected"
        return f"{self.line.name}: {what}"

    def _pause(self) -> float:
        """Seconds until all that is on the way should be answered; several fit into
        the time after which it is given up.
        """
        bytes_ = sum(len(data) for _, data in self.sent.values()) + self.welcome.most
        trip = max(2 * self.link.measured(), self.line.shortest_pause)
        least = self.line.shortest_pause + 2 * bytes_ * self.line.seconds_per_byte
        wanted = self.link.slower * (trip - self.line.shortest_pause + least)
        return min(wanted, max(least, self.link.patience / 8))

    def _fill(self) -> None:
        """Sends as many as the board has room for; always one."""
        room = max(min(self.welcome.waits, _MOST_ROOM), self.link.ahead)
        while self.left:
            data = self.calls[self.left[0]].pack()
            on_way = sum(len(frame) for _, frame in self.sent.values())
            if self.sent and on_way + 2 * (len(data) + EXTRA) > room:
                break
            number = self.link.number()
            frame = encode(Frame(Kind.CALL, self.welcome.session, number, data))
            if not self.sent:
                self.first_sent, self.again = self.line.clock(), False
            self.sent[number] = (self.left.popleft(), frame)
            self.line.write(frame)

    def _send_again(self) -> None:
        self.again = True
        self.link.slower = min(2 * self.link.slower, _MOST_SLOWER)
        self.link.resent += len(self.sent)
        for _, frame in self.sent.values():
            self.line.write(frame)

    def _taken(self, frame: Frame) -> bool:
        """Whether it is the answer to a call that is on the way."""
        if frame.kind != Kind.REPLY or frame.sequence not in self.sent:
            return False
        if len(frame.data) < 4:
            return False
        if not self.again:
            self.link.slower = 1
            self.link.measured(self.line.clock() - self.first_sent)
        for number in list(self.sent):
            index, _ = self.sent.pop(number)
            if number == frame.sequence:
                self.answers[index] = self._answer(self.calls[index], frame.data)
                break
            self.left.append(index)  # done, but its answer is lost
        self.first_sent = self.line.clock()
        return True

    def _answer(self, call: Call, data: bytes) -> Answer:
        """Errors  RemoteError where it is as long as no answer to this call"""
        status = int.from_bytes(data[:4], "little", signed=True)
        size = len(data) - 4
        if size != call.gives and not (status < 0 and not size):
            what = f"answers call {call.words[0]} with {size} bytes, not {call.gives}"
            raise RemoteError(f"{self.line.name}: the board {what}")
        return Answer(status, data[4:])


def _text(data: bytes) -> str:
    """What a board says, for people: what a terminal would obey is written out."""
    said = data.decode(errors="replace")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in said)


def _read_welcome(frame: Frame, nonce: int) -> Welcome | None:
    if frame.kind != Kind.WELCOME or len(frame.data) < _WELCOME.size:
        return None
    version, most, waits, hz, memory, objects, ticks, for_ = _WELCOME.unpack_from(
        frame.data
    )
    if for_ != nonce:
        return None
    texts = frame.data[_WELCOME.size :].split(b"\0")
    library, board = map(_text, [*texts, b"", b""][:2])
    facts = (version, most, waits, hz, memory, objects, bool(ticks), library, board)
    return Welcome(frame.session, *facts)
