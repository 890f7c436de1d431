"""Boards from Python: at the end of a line, or in a simulator that is started here.

Knows libraries by their content: what is on a board must be what runs there.
"""

from __future__ import annotations

import abc
import hashlib
import operator
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from pybuild.boards.firmware.server import server_file
from pybuild.errors import BuildError
from pybuild.host.source import Portable, Source
from pybuild.install import boards, crt_headers, crt_sources
from pybuild.rpc.board import Board
from pybuild.rpc.device import RemoteDevice
from pybuild.rpc.key import Key
from pybuild.rpc.line import Line, RemoteError
from pybuild.rpc.link import Link
from pybuild.rpc.net import RemoteNet
from pybuild.targets.board import Board as BoardFacts
from pybuild.targets.board import board_names, load_board

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library

_SESSION = 128  # what is added to the type of a device, as in TVM
_CLOSED = "the session was closed"
_HOST = "host"  # the target of libraries for this machine
_AHEAD = 1 << 13  # bytes that a simulator keeps back while its board is busy

# starts a simulator with a library's firmware: the library, its content
Start = Callable[[Portable, str], Line]


def content_of(library: Portable) -> str:
    """The name and hash that a board reports for its flash: the library's name and a
    hash of its code, its constants and crt; weights, which are sent, and comments do
    not count.
    """
    content = hashlib.sha256()
    for path in (*crt_headers(), *crt_sources(), boards() / "common" / "server.c"):
        content.update(path.read_bytes())
    for name, data in sorted(library.shipped().items()):
        if name.endswith("_params.c"):
            continue
        if not isinstance(data, bytes):  # the opening comment names a file
            data = str(data).partition("*/")[2].encode()
        content.update(name.encode() + b"\0" + data)
    return f"{library.name[:40]}-{content.hexdigest()[:16]}"


class Remote(abc.ABC):
    """A board, once it is connected; its modules live as long as it. Without close() it
    ends with the last that refers to it: this, its devices, its modules.

    name    as it was asked for, for messages
    Thread  any: one lock a session
    """

    def __init__(self, name: str, patience: float) -> None:
        self.name = name
        self.lock = threading.RLock()
        self.patience = patience
        self._board: Board | None = None
        self._is_closed = False
        self._content = ""
        # by the id of a library: the library, the same for this core, its content
        self._fitted: dict[int, tuple[Portable, Portable, str]] = {}

    def __repr__(self) -> str:
        state = "not connected" if self._board is None else "connected"
        state = "closed" if self._is_closed else state
        return f"{type(self).__name__}({self.name!r}, {state})"

    def device(self, index: int = 0) -> RemoteDevice:
        """The device of the board.

        Errors  ValueError for another device than the board's CPU
        """
        if operator.index(index) != 0:
            raise ValueError(f"{self.name} has one device, number 0, not {index}")
        return RemoteDevice(1 + _SESSION, 0, self)

    cpu = device

    def _known(self, library: Portable) -> tuple[Portable, Portable, str]:
        """The library, the same as it runs on this board, and that one's content."""
        self._must_be_open()
        if id(library) not in self._fitted:
            made = library.retargeted(self._target(library))
            self._fitted[id(library)] = (library, made, content_of(made))
            self._fitted[id(made)] = (made, made, content_of(made))
        return self._fitted[id(library)]

    def instance(self, source: Source) -> tuple[Source, RemoteNet]:
        """A new instance, without weights, and its library for the board's core.

        Errors  BuildError; RemoteError; CRT_ERR_MEMORY
        """
        with self.lock:
            _, made, content = self._known(cast(Portable, source))
            return made, RemoteNet(self._serving(made, content), made.planned())

    def serve(self, library: Portable) -> None:
        """Makes sure that this library is in the board's flash.

        Errors  BuildError with the command that flashes it, for one that is there
        """
        with self.lock:
            _, made, content = self._known(library)
            self._serving(made, content)

    def close(self) -> None:
        """Ends the session, for good; a simulator ends too."""
        with self.lock:
            self._is_closed = True
            self._end(_CLOSED)

    def _end(self, why: str) -> None:
        if self._board is not None:
            self._board.link.close(why)
        self._board = None

    def _must_be_open(self) -> None:
        """Checks that the session is open.

        Errors  RemoteError after close()
        """
        if self._is_closed:
            raise RemoteError(f"{self.name}: {_CLOSED}")

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @abc.abstractmethod
    def _target(self, library: Portable) -> str:
        """The target whose kernels the board runs."""

    @abc.abstractmethod
    def _serving(self, library: Portable, content: str) -> Board:
        """The board with this library in its flash."""

    @property
    def board(self) -> Board:
        """The board, once a library is there.

        Errors  RuntimeError before the first library is there; RemoteError
        """
        self._must_be_open()
        if self._board is None:
            raise RuntimeError(f"{self.name} runs no library yet")
        return self._board


class Simulated(Remote):
    """A board whose simulator is built and started here, again for each library."""

    def __init__(
        self, name: str, facts: BoardFacts, patience: float, start: Start
    ) -> None:
        super().__init__(name, patience)
        self._facts, self._start = facts, start

    def _target(self, library: Portable) -> str:
        return self._facts.core.target

    def _serving(self, library: Portable, content: str) -> Board:
        if self._board is None or self._content != content:
            self._end("the board runs another library now")
            link = Link(self._start(library, content), self.patience, ahead=_AHEAD)
            try:
                self._board = Board(link, simulated=True)
            except Exception:
                link.line.close()
                raise
            self._content = content
        return self._board


class Wired(Remote):
    """A real board: its flash stays as it is."""

    def __init__(
        self, name: str, line: Line, patience: float, key: Key | None = None
    ) -> None:
        """Errors  RemoteTimeout where no board answers; RemoteError where it has no or
        another key
        """
        super().__init__(name, patience)
        self._has_key = key is not None
        try:
            self._board = Board(Link(line, patience, key=key), simulated=False)
        except BaseException:
            line.close()  # else it is taken while somebody holds the error
            raise

    def _target(self, library: Portable) -> str:
        where = self.board.welcome.board
        if where in board_names():
            return load_board(where).core.target
        target = library.facts()["options"]["target"]
        if target == _HOST:
            what = f"pybuild does not know the board '{where}', so not its processor"
            raise BuildError(self.name, what, "build(..., target='cortex-m4'), say")
        return str(target)

    def _serving(self, library: Portable, content: str) -> Board:
        welcome = self.board.welcome
        if welcome.library == content:
            return self.board
        what = f"the board has the library '{welcome.library}', not '{content}'"
        raise BuildError(self.name, what, self._flash_hint(library, content))

    def _flash_hint(self, library: Portable, content: str) -> str:
        where = self.board.welcome.board
        if where not in board_names() or self._has_key:
            return "flash firmware that serves it, see docs/rpc-protocol.md"
        facts = load_board(where)
        try:
            file = server_file(cast("Library", library), facts, content)
        except BuildError as error:
            return f"flash it: its firmware cannot be built here: {error}"
        if not facts.flash_command:
            return f"flash it: {file}"
        return f"flash it: {facts.flash_command.replace('{}', str(file))}"
