"""Simulated boards: QEMU behind a socket, Unicorn in this process.

Knows firmware and lines; no session.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import weakref
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory

from pybuild.boards.firmware.build import Firmware
from pybuild.boards.simulators.process import tied
from pybuild.boards.simulators.qemu import Qemu, machine_options, program_options
from pybuild.boards.simulators.unicorn import NOWHERE, PAGE, SYSTEM, Machine
from pybuild.errors import BuildError
from pybuild.install import temporary_folder
from pybuild.rpc.line import RemoteError, SocketLine

_START = 30.0  # seconds in which QEMU must have opened its serial port
_COUNTER, _TURN = 0x018, 1 << 24  # of SysTick, which counts down
_IDLE = 4  # a program that sends asks once for each byte, and then sends it
# where received bytes are read; status register; its bits without and with a byte
_UARTS = {
    "cmsdk": (0x00, 0x04, 0, 2),
    "stm32": (0x04, 0x00, 0x80, 0xA0),
    "pl011": (0x00, 0x18, 0x10, 0),
    "nrf51": (0x518, 0x108, 0, 1),
    "ns16550": (0x00, 0x05, 0x20, 0x21),
    "sifive": (0x04, 0x04, 0x80000000, 0),
}


def _listening(folder: Path) -> tuple[socket.socket, str]:
    """A socket that waits for QEMU, and its name for QEMU."""
    if sys.platform == "win32":
        here = socket.create_server(("127.0.0.1", 0), backlog=1)
        address = f"tcp:127.0.0.1:{here.getsockname()[1]}"
    else:
        here = socket.socket(socket.AF_UNIX)  # nobody else on this machine reaches it
        here.bind(str(folder / "serial"))
        here.listen(1)
        address = f"unix:{folder / 'serial'}"
    here.settimeout(0.1)
    return here, address


class QemuLine(SocketLine):
    """The serial port of a QEMU that this has started. It loses nothing, but takes a
    byte only when the board has read the one before.
    """

    shortest_pause = 5.0

    def __init__(self, name: str, machine: Qemu, firmware: Firmware) -> None:
        """Errors  BuildError where QEMU does not start"""
        self._firmware = firmware  # its file is gone with it
        self._folder = temporary_folder()
        here, address = _listening(Path(self._folder.name))
        with here:
            options = machine_options(firmware.board)
            options[options.index("-serial") + 1] = address
            options += program_options(firmware.board, firmware.path)
            command = [machine.path, *options]
            self._process = subprocess.Popen(
                tied(command),
                cwd=self._folder.name, stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for this process
            )  # fmt: skip
            # dropped without close(), it takes QEMU with it
            self._last = weakref.finalize(self, _end, self._process, self._folder)
            super().__init__(name, self._accepted(here, machine.name, command))

    def _accepted(
        self, here: socket.socket, simulator: str, command: list[str]
    ) -> socket.socket:
        end = time.monotonic() + _START
        while self._process.poll() is None and time.monotonic() < end:
            try:
                return here.accept()[0]
            except TimeoutError:
                continue
        what = self._ended() or "has not opened its serial port"
        raise BuildError(simulator, what, f"tried: {' '.join(command)}")

    def close(self) -> None:
        super().close()
        self._ended()

    def _ended(self) -> str:
        """Ends QEMU; returns its output."""
        return (self._last() or b"").decode(errors="replace").strip()


def _end(process: subprocess.Popen[bytes], folder: TemporaryDirectory[str]) -> bytes:
    """Ends QEMU, once; returns its output."""
    if sys.platform == "win32":
        process.kill()
    _, said = process.communicate()
    folder.cleanup()
    return said


class UnicornLine:
    """The serial port of a board in Unicorn. It runs only while it is read from, and
    until it has nothing to do: a pause then takes no time.
    """

    seconds_per_byte = 0.0
    shortest_pause = 1.0

    def __init__(self, name: str, firmware: Firmware) -> None:
        self.name = name
        self._machine = _Serving(firmware)
        self._skipped = 0.0

    def clock(self) -> float:
        return time.monotonic() + self._skipped

    def write(self, data: bytes) -> None:
        self._machine.given.extend(data)

    def read(self, timeout: float) -> bytes:
        machine, end = self._machine, self.clock() + timeout
        while not machine.console and self.clock() < end:
            fault = machine.serve(end - self.clock())
            if fault:
                raise RemoteError(f"{self.name}: {fault}")
            if machine.is_idle and not machine.console:
                self._skipped += max(end - self.clock(), 0)
        data = bytes(machine.console)
        machine.console.clear()
        return data

    def close(self) -> None:
        self._machine.given.clear()


class _Serving(Machine):
    """Stops when the program asks for a byte and there is none; has a SysTick that
    follows this machine's clock.
    """

    def __init__(self, firmware: Firmware) -> None:
        self.given: deque[int] = deque()
        self.is_idle = False
        self._asked = 0  # times in a row that the status was read, and nothing done
        self._words: dict[int, int] = {}
        self._turns = firmware.elf.by_name.get("turns")
        super().__init__(firmware, {})
        self._at: int = self._start()

    def _map_memories(self) -> None:
        super()._map_memories()
        if self.is_arm:
            self.uc.mem_unmap(SYSTEM, PAGE)
            self.uc.mmio_map(SYSTEM, PAGE, self._look, None, self._keep, None)

    def serve(self, seconds: float) -> str:
        """Runs until there is nothing to do; what went wrong, "" for nothing."""
        self.is_idle, self._asked = False, 0
        try:
            self.uc.emu_start(self._at, NOWHERE, timeout=int(seconds * 1e6) + 1)
        except self.unicorn.UcError as error:
            return f"{error} at {self.place()}"
        self._at = self._pc() | (1 if self.is_arm else 0)
        if self.host.code is not None:
            return f"the program ended with {self.host.code} at {self.place()}"
        return ""

    # ---- the console ----------------------------------------------------------

    def _load(self, uc: object, offset: int, size: int, user: object) -> int:
        data, status, without, with_ = _UARTS[self.board.uart]
        register = offset - self.board.uart_base % PAGE
        if register == data and self.given:
            self._asked = 0
            return self.given.popleft()
        if register != status:
            return super()._load(uc, offset, size, user)
        self._asked += not self.given
        if self._asked >= _IDLE:
            self.is_idle = True
            self.uc.emu_stop()
        return with_ if self.given else without

    def _store(
        self, uc: object, offset: int, size: int, value: int, user: object
    ) -> None:
        self._asked = 0
        super()._store(uc, offset, size, value, user)

    # ---- SysTick --------------------------------------------------------------

    def _look(self, uc: object, offset: int, size: int, user: object) -> int:
        if offset != _COUNTER or self._turns is None:
            return self._words.get(offset, 0)
        now = time.perf_counter_ns() * self.board.hz // 1_000_000_000
        turns = (now // _TURN & 0xFFFFFFFF).to_bytes(4, "little")
        self._write(self._turns.address, turns)  # as its interrupt does
        return -now % _TURN

    def _keep(
        self, uc: object, offset: int, size: int, value: int, user: object
    ) -> None:
        self._words[offset] = value
