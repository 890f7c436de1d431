"""What a remote device costs, as tables: round trips and throughput by place, and calls
on a line that does harm. Knows what a user knows, and the tests' lines.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import numpy as np

import pybuild
from pybuild import rpc
from pybuild.rpc.board import Board
from pybuild.rpc.calls import Number, call
from pybuild.rpc.line import Line
from pybuild.rpc.link import Link
from tests.bench.costs import Table, model
from tests.rpc.lines import Harm, Host, HostLine
from tests.rpc.lines import library as digits
from tests.rpc.test_faults import session

PLACES = ("qemu:mps2-an386", "unicorn:mps2-an386")
TRIPS, BYTES, RUNS = 200, 16384, 20


def remote() -> Table:
    library = pybuild.build(model("kws_int8.tflite"), target="llvm")
    (tensor,) = library.graph.inputs
    rows = []
    for place in PLACES:
        with rpc.connect(place, library) as there:
            module = library["default"](there.device(0))
            image = np.zeros(library.graph.tensor(tensor).shape, np.int8)
            module.run(**{tensor: image})
            whole = _median(RUNS, lambda m=module, x=image: _inference(m, tensor, x))
            own = module.benchmark(repeat=3, number=3).median
            rows.append((place, *_line(there.board), whole * 1e3, own * 1e3))
    here = Board(Link(HostLine(Host(digits()))), simulated=False)
    rows.append(("C server in this process", *_line(here), "", ""))
    says = (
        f"Round trip: median of {TRIPS} calls without data (ECHO). In, out: {BYTES} "
        "bytes to a buffer of the board's and back, in frames of 1,024 bytes of data "
        "(512 in this process). Inference: kws_int8.tflite, set_input, run and "
        "get_output from Python, of which so much was the run by the board's own "
        "counter; both follow the simulator's clock, not a chip's. On a UART each "
        "byte takes 10 bits: the bytes of an inference are counted. Load average of "
        f"this machine meanwhile: {os.getloadavg()[0]:.0f}."
    )
    columns = (
        "place", "round trip, ms", "in, KB/s", "out, KB/s", "inference, ms",
        "of it run, ms",
    )  # fmt: skip
    return Table("Remote devices", says, columns, tuple(rows))


def _inference(
    module: pybuild.graph_executor.GraphModule, name: str, x: object
) -> None:
    module.run(**{name: x})
    module.get_output(0)


def _median(count: int, what: Callable[[], object]) -> float:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        what()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _line(board: Board) -> tuple[float, float, float]:
    """Milliseconds of a call; KB a second there and back."""
    echo = call(Number.ECHO)
    trip = _median(TRIPS, lambda: board.link.call(echo))
    buffer, data = board.allocate(BYTES), np.random.default_rng(0).bytes(BYTES)
    there = _median(3, lambda: board.write(buffer, 0, data))
    back = _median(3, lambda: board.read(buffer, 0, BYTES))
    assert board.read(buffer, 0, BYTES) == data
    return trip * 1e3, BYTES / there / 1e3, BYTES / back / 1e3


class _Counted:
    """A line whose bytes are counted."""

    def __init__(self, line: Line) -> None:
        self._line, self.there, self.back = line, 0, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._line, name)

    def write(self, data: bytes) -> None:
        self.there += len(data)
        self._line.write(data)

    def read(self, timeout: float) -> bytes:
        data = self._line.read(timeout)
        self.back += len(data)
        return data


HARM = Harm(flip=5e-4, drop=5e-4, repeat=5e-4, delay=5e-4, reset=2e-5)


def faults() -> Table:
    """10,000 calls on each of three lines."""
    rows = []
    for seed in (1, 2, 3):
        start = time.perf_counter()
        ends = session(HARM, 10_000, seed)
        spent = time.perf_counter() - start
        harms = [ends[kind] for kind in Harm.__dataclass_fields__]
        clear = ends["BoardReset"] + ends["RemoteTimeout"] + ends["RemoteError"]
        rows.append((seed, 10_000, *harms, ends["right"], clear, ends["wrong"], spent))
    says = (
        "Calls to the C server through a line that, for each byte that goes either "
        "way, flips bits, loses, repeats or delays runs of bytes with a chance of 1 "
        "in 2,000 each, and resets the board in the middle with 1 in 50,000. Three "
        "calls are an inference, whose answer must have the bits of this machine; "
        "errors are those that a caller sees (BoardReset, RemoteTimeout)."
    )
    columns = (
        "seed", "calls", "flips", "losses", "repeats", "delays", "resets", "right",
        "clear errors", "wrong", "seconds",
    )  # fmt: skip
    return Table("Calls on damaged lines", says, columns, tuple(rows))


def bytes_of_an_inference() -> Table:
    """Of the protocol, counted."""
    rows = []
    library = pybuild.build(model("kws_int8.tflite"), target="generic", input="keep")
    (name,) = library.graph.inputs
    tensor = library.graph.tensor(name)
    line = _Counted(HostLine(Host(library)))
    board = Board(Link(line), simulated=False)
    from pybuild.rpc.net import RemoteNet

    net = RemoteNet(board, library.plan)
    x = np.random.default_rng(0).integers(-128, 128, tensor.shape, np.int8)
    parts: dict[str, Callable[[], object]] = {
        "set_input": lambda: net.set_input(name, x),
        "run": net.go,
        "get_output": lambda: net.get_output(0),
    }
    data = {"set_input": tensor.bytes, "run": 0, "get_output": net.results[0].bytes}
    for part, does in parts.items():
        line.there = line.back = 0
        does()
        total = line.there + line.back
        at = [total * 10e3 / baud for baud in (115200, 921600)]
        rows.append((part, data[part], line.there, line.back, *at))
    says = (
        "kws_int8.tflite, frames of up to 512 bytes of data. Counted; the last columns "
        "are what so many bytes of 10 bits take at that speed."
    )
    columns = (
        "call", "data", "bytes there", "bytes back", "ms at 115,200", "ms at 921,600"
    )  # fmt: skip
    return Table("Bytes on the line", says, columns, tuple(rows))
