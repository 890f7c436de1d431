"""Lines by sockets, and simulators that end when the script does, however it ends."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time

import pytest

from pybuild.rpc.line import RemoteError, SocketLine
from tests.rpc.test_places import place

MUCH = bytes(range(256)) * 4096


def test_a_board_that_must_be_heard_before_it_listens() -> None:
    """Both sides write much: neither reads before it has written all."""
    here, there = socket.socketpair()
    line, got = SocketLine("board", here), bytearray()

    def talks() -> None:
        there.sendall(MUCH)
        while len(got) < len(MUCH):
            got.extend(there.recv(65536))

    board = threading.Thread(target=talks, daemon=True)
    board.start()
    line.write(MUCH)
    came = bytearray()
    while len(came) < len(MUCH):
        came += line.read(1)
    board.join(5)
    assert bytes(came) == MUCH and bytes(got) == MUCH
    there.close()
    for call in (lambda: line.read(1), lambda: line.write(MUCH)):
        with pytest.raises(RemoteError, match=r"^board: "):
            call()
    line.close()


# ---- ends ---------------------------------------------------------------------

SLEEPS = """
import os, subprocess, sys
from pybuild.boards.simulators.process import tied
command = tied(["sh", "-c", "echo $$; exec sleep 60"])
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
made = subprocess.Popen(command, **pipes, start_new_session=True)
print(int(made.stdout.readline()), flush=True)
"""
SERVES = """
import os
import pybuild as tvm
from pybuild import rpc
lib = tvm.build("examples/digits/digits_int8.tflite")
remote = rpc.connect("qemu:mps2-an386", lib)
process = remote.board.link.line._process
print(process.pid, flush=True)
"""
ENDS = {
    "the last line": "",
    "an exception": "raise RuntimeError('of the script')",
    "os._exit": "os._exit(3)",
    "a signal": "os.kill(os.getpid(), 9)",
}


def ended(process: int) -> bool:
    """Whether a process, or those of a group, are no more than a line in a table."""
    said = subprocess.run(
        ["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True
    ).stdout
    rows = [line.split() for line in said.splitlines()]
    return not any(
        str(process) in row[:2] and not row[2].startswith("Z") for row in rows
    )


def run(script: str) -> int:
    """The number that the script says; its end."""
    made = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert made.stdout is not None
    process = int(re.findall(r"^\d+$", made.stdout.readline())[0])
    made.wait()
    made.stdout.close()
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups")
@pytest.mark.parametrize("end", ENDS)
def test_what_a_script_started_ends_with_it(end: str) -> None:
    process, late = run(SLEEPS + "\n" + ENDS[end]), time.monotonic() + 10
    while not ended(process) and time.monotonic() < late:
        time.sleep(0.02)
    assert ended(process)


def test_a_simulated_board_ends_with_its_script() -> None:
    place("qemu", "mps2-an386")
    process, late = run(SERVES + ENDS["os._exit"]), time.monotonic() + 10
    while not ended(process) and time.monotonic() < late:
        time.sleep(0.02)
    assert ended(process)


def test_the_status_of_what_was_tied_is_told() -> None:
    from pybuild.boards.simulators.process import tied

    for command, code in (("exit 7", 7), ("kill -9 $$", -9), ("exit 0", 0)):
        there, here = os.pipe()
        done = subprocess.run(tied(["sh", "-c", command]), stdin=there)
        assert done.returncode == code
        os.close(there)
        os.close(here)
