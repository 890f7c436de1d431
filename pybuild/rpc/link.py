"""Calls that arrive once, on a line that loses bytes: docs/rpc-protocol.md.

Knows frames and sessions; of calls only that they have words, data and a status.
"""

from __future__ import annotations

import logging
import secrets
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence

from pybuild.host.abi import check
from pybuild.host.locks import one_at_a_time
from pybuild.records import dataclass
from pybuild.rpc.frame import EXTRA, Decoder, Frame, Kind, encode
from pybuild.rpc.key import TAG_BYTES, Key, Seal, random_bytes
from pybuild.rpc.line import Line, RemoteError
from pybuild.rpc.welcome import (
    LEAST_DATA,
    MOST_DATA,
    VERSION,
    Welcome,
    offer_in,
    text,
)

_LOG = logging.getLogger("pybuild.rpc")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 1.0  # seconds before a call is sent again
_MOST_SLOWER = 32  # times as long a pause as the line seemed to need
_HELLOS = 20  # sessions that are asked for before it is given up
_REFUSALS = 3  # of a key, before they are believed: somebody may have made them up
_MOST_ROOM = 1 << 20  # bytes of a line's room that are made use of
_LAST = 0xFFFFFFFF  # number of a call


class BoardReset(RemoteError):
    """The board has lost this session: it was reset."""


class RemoteTimeout(RemoteError):
    """The board did not answer within the time limit of the call."""


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


@one_at_a_time
class Link:
    """One session after the other on a line.

    patience  seconds without an answer after which a call is given up
    ahead     bytes that the line keeps for a busy board, beside what it says itself
    key       who is at the other end must have it; None: anybody may be there
    lock      held by each call
    Thread    any, one after the other
    Errors    RemoteTimeout; BoardReset; RemoteError where the line is gone; the link
              is then of no use until hello(). CRT_ERR_... for what the board refused
    """

    def __init__(
        self,
        line: Line,
        patience: float = 5.0,
        ahead: int = 0,
        key: Key | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.line = line
        self.extra = EXTRA + (TAG_BYTES if key else 0)  # bytes beside those of a call
        self._key = key
        self._seal: Seal | None = None
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
        """Ends the link for good; what: the reason, for later callers."""
        self._broken = RemoteError(f"{self.line.name}: {what}")
        self.line.close()

    # ---- frames ---------------------------------------------------------------

    def _next(self, until: float) -> Frame | None:
        """The next binary frame, text for people skipped; None: the time is over."""
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
        if self._key is not None:
            opened = self._opened(frame)
            if opened is None or frame.sequence <= self._logs:
                return
            frame = opened
        lost = frame.sequence - self._logs - 1
        if 0 < lost < 1 << 31:
            self.on_log(f"({lost} lines are lost)")
        self._logs = frame.sequence
        self.on_log(text(frame.data))

    # ---- sessions -------------------------------------------------------------

    def hello(self) -> Welcome:
        """Begins a session; all that was on the board is gone.

        Errors  RemoteTimeout where nobody answers; RemoteError for another version
        """
        self._broken = None
        end = self.line.clock() + self.patience
        for _ in range(_HELLOS):
            welcome, self._seal = self._offered(end)
            if self._key is None and welcome.version != VERSION:
                what = f"the board speaks version {welcome.version} of the protocol"
                raise RemoteError(f"{self.line.name}: {what}, not {VERSION}")
            if not LEAST_DATA <= welcome.most <= MOST_DATA:
                what = f"the board's frames hold {welcome.most} bytes, where a board's"
                what += f" hold {LEAST_DATA} to {MOST_DATA}"
                raise RemoteError(f"{self.line.name}: {what}")
            self.welcome, self._sequence, self._logs = welcome, 0, 0
            try:
                self.call(Call((0,)))
            except BoardReset:  # another hello came in between
                self._broken = None
                continue
            return welcome
        raise RemoteTimeout(f"{self.line.name}: every session is lost at once")

    def _offered(self, end: float) -> tuple[Welcome, Seal | None]:
        nonce, pause = secrets.randbits(32), _FIRST_PAUSE
        refusals: list[str] = []
        mine = b"" if self._key is None else random_bytes()
        hello = encode(Frame(Kind.HELLO, nonce, 0, mine))
        while self.line.clock() < end:
            self.line.write(hello)
            until = min(end, self.line.clock() + pause)
            while frame := self._next(until):
                found = offer_in(frame, nonce, mine, self._key)
                if found is not None and found.welcome is not None:
                    return found.welcome, found.seal
                refusals += [] if found is None else [found.refused]
                if refusals and (self._key is None or len(refusals) == _REFUSALS):
                    raise RemoteError(f"{self.line.name}: {refusals[-1]}")
            pause = min(2 * pause, _LONGEST_PAUSE)
        if refusals:
            raise RemoteError(f"{self.line.name}: {refusals[-1]}")
        raise RemoteTimeout(f"{self.line.name}: no board answers")

    def sealed(self, frame: Frame) -> Frame:
        """The frame as it is sent: with its tag, if the session has a key."""
        return frame if self._seal is None else self._seal.sealed(frame)

    def _opened(self, frame: Frame) -> Frame | None:
        """The frame as it was before it was sent; None if it is not from the board."""
        if self._key is None:
            return frame
        return None if self._seal is None else self._seal.opened(frame)

    # ---- calls ----------------------------------------------------------------

    def call(self, call: Call, takes: float = 0) -> Answer:
        """Executes one call exactly once.

        takes   seconds that the board is expected to need
        """
        (answer,) = self._answers([call], takes)
        return answer

    def value(self, call: Call) -> int:
        """The status of a call, which must be good."""
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
            opened = self._opened(frame)
            if frame.kind in (Kind.REPLY, Kind.WORKING) and opened is not None:
                return opened
        return None

    def number(self) -> int:
        """The number of the next call.

        Errors  RemoteError where a session with a key has had all numbers
        """
        if self._key is not None and self._sequence == _LAST:
            raise RemoteError(f"{self.line.name}: connect again: all numbers are used")
        self._sequence = (self._sequence + 1) & _LAST
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
            if self.sent and on_way + 2 * (len(data) + self.link.extra) > room:
                break
            number = self.link.number()
            plain = Frame(Kind.CALL, self.welcome.session, number, data)
            frame = encode(self.link.sealed(plain))
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
        """True if it is the answer to a call that is on the way."""
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
