"""Lines that carry bytes both ways: sockets and serial ports.

Knows no frame. A line may lose and change bytes; what is broken for good raises.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from typing import Any, Protocol

from pybuild.errors import UsageError

CHUNK = 65536  # bytes of one read
_STUCK = 20  # seconds in which a line must take a byte


class RemoteError(RuntimeError):
    """A board did not do as it was asked; the message says why."""


class Line(Protocol):
    """name: for messages. seconds_per_byte: 0 where bytes take no time.
    shortest_pause: seconds without an answer after which something may be lost.
    """

    name: str
    seconds_per_byte: float
    shortest_pause: float

    def write(self, data: bytes) -> None:
        """Sends bytes.

        Errors  RemoteError where the line is gone
        """
        ...

    def read(self, timeout: float) -> bytes:
        """The bytes that have arrived; waits up to `timeout` seconds, b"" if there are
        none.

        Errors  RemoteError where the line is gone
        """
        ...

    def clock(self) -> float:
        """Seconds, for timeouts on this line."""
        ...

    def close(self) -> None: ...


class SocketLine:
    """A connected stream socket, which this owns from now on."""

    seconds_per_byte = 0.0
    shortest_pause = 0.5  # sockets lose nothing, the board may be slow
    clock = staticmethod(time.monotonic)

    def __init__(self, name: str, there: socket.socket) -> None:
        self.name = name
        self._socket = there
        self._came = bytearray()  # while it was written
        there.setblocking(False)
        if there.family in (socket.AF_INET, socket.AF_INET6):
            there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def write(self, data: bytes) -> None:
        """Takes what comes meanwhile: a board that cannot send does not listen."""
        end = self.clock() + _STUCK
        both = [self._socket]
        while data:
            came, ready, _ = select.select(both, both, [], 1)
            try:
                if came:
                    self._came += self._received()
                if ready:
                    data = data[self._socket.send(data) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise RemoteError(f"{self.name}: {error.strerror}") from None
            if came or ready:
                end = self.clock() + _STUCK
            elif self.clock() > end:
                raise RemoteError(f"{self.name}: takes no bytes any more")

    def read(self, timeout: float) -> bytes:
        if not self._came:
            if not select.select([self._socket], [], [], max(timeout, 0))[0]:
                return b""
            try:
                return self._received()
            except OSError as error:
                raise RemoteError(f"{self.name}: {error.strerror}") from None
        data = bytes(self._came)
        self._came.clear()
        return data

    def _received(self) -> bytes:
        data = self._socket.recv(CHUNK)
        if not data:
            raise RemoteError(f"{self.name}: the other side has closed the line")
        return data

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()


class SerialLine:
    """A UART of this machine, by pyserial."""

    shortest_pause = 0.05
    clock = staticmethod(time.monotonic)

    def __init__(self, name: str, port: str, baud: int) -> None:
        """Errors  BuildError without pyserial; RemoteError for no such port"""
        try:
            import serial
        except ImportError:
            hint = "pip install pyserial"
            raise UsageError(name, "the package pyserial is missing", hint) from None
        self.name = name
        self.seconds_per_byte = 10 / baud  # with start and stop bit
        self._broken = (serial.SerialException, OSError)
        try:
            self._port: Any = serial.Serial(port, baud, timeout=0)
        except (*self._broken, ValueError) as error:
            raise RemoteError(f"{name}: {error}") from None

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except self._broken as error:
            raise RemoteError(f"{self.name}: {error}") from None

    def read(self, timeout: float) -> bytes:
        try:
            self._port.timeout = max(timeout, 0)
            data = bytes(self._port.read(1))
            return data + bytes(self._port.read(self._port.in_waiting)) if data else b""
        except self._broken as error:
            raise RemoteError(f"{self.name}: {error}") from None

    def close(self) -> None:
        self._port.close()


def tcp_line(name: str, host: str, port: int) -> SocketLine:
    """A line over TCP.

    Errors  RemoteError where nobody listens
    """
    try:
        return SocketLine(name, socket.create_connection((host, port), timeout=10))
    except OSError as error:
        raise RemoteError(f"{name}: {error.strerror or error}") from None
