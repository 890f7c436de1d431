"""Plays EEMBC's runner of MLPerf Tiny: accuracy and performance mode of firmware that
speaks its protocol, at a serial port or in QEMU, on made data.

python runner.py MODEL qemu:build/mlperf/out/mlperf_tiny
python runner.py MODEL /dev/ttyACM0 --baud 115200 --sample pixels
"""

from __future__ import annotations

import argparse
import os
import re
import select
import statistics
import subprocess
import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np

import pybuild

CHUNK = 32  # bytes of a sample in a command
QEMU = [
    *("qemu-system-arm", "-M", "mps2-an386", "-display", "none", "-monitor", "none"),
    *("-serial", "stdio", "-semihosting-config", "enable=on,target=native", "-kernel"),
]
SAMPLES = ("raw", "pixels", "floats")


class Wrong(RuntimeError):
    """What the firmware says is not what the protocol has."""


class Line(Protocol):
    def write(self, data: bytes) -> None: ...

    def read(self, seconds: float) -> bytes: ...

    def close(self) -> None: ...


class Files:
    """Two descriptors, such as the ends of pipes; `process` ends with it."""

    def __init__(
        self, read: int, write: int, process: subprocess.Popen[bytes] | None = None
    ) -> None:
        self._read, self._write, self._process = read, write, process

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._write, data) :]

    def read(self, seconds: float) -> bytes:
        ready, _, _ = select.select([self._read], [], [], seconds)
        return os.read(self._read, 4096) if ready else b""

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


class Serial:
    """A port, by pyserial."""

    def __init__(self, port: str, baud: int) -> None:
        import serial

        self._port = serial.Serial(port, baud)

    def write(self, data: bytes) -> None:
        self._port.write(data)

    def read(self, seconds: float) -> bytes:
        self._port.timeout = seconds
        data: bytes = self._port.read(1)
        return data + bytes(self._port.read(self._port.in_waiting))

    def close(self) -> None:
        self._port.close()


def opened(port: str, baud: int) -> Line:
    """qemu:ELF, or a serial port."""
    kind, _, elf = port.partition(":")
    if kind != "qemu":
        return Serial(port, baud)
    made = subprocess.Popen([*QEMU, elf], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert made.stdin is not None and made.stdout is not None
    return Files(made.stdout.fileno(), made.stdin.fileno(), made)


class Dut:
    """The device under test: a command in, lines up to m-ready out."""

    def __init__(self, line: Line, patience: float = 60.0) -> None:
        self.line, self.patience = line, patience
        self._rest = b""

    def lines(self) -> list[str]:
        """Up to m-ready.

        Errors  Wrong for e-[...], and where nothing comes any more
        """
        found: list[str] = []
        end = time.monotonic() + self.patience
        while True:
            text, newline, rest = self._rest.partition(b"\n")
            if newline:
                self._rest = rest
                found.append(text.decode(errors="replace").strip())
                if found[-1] == "m-ready":
                    break
            elif time.monotonic() > end:
                raise Wrong(f"no m-ready after {self.patience:g} s: {found}")
            else:
                self._rest += self.line.read(0.2)
        for one in found:
            if one.startswith("e-"):
                raise Wrong(one)
        return found

    def command(self, text: str) -> list[str]:
        self.line.write(f"{text}%".encode())
        return self.lines()

    def about(self) -> tuple[str, str, str]:
        """Name, profile and model."""
        said = " ".join([*self.command("name"), *self.command("profile")])
        found = re.search(
            r"m-name-dut-\[(.*?)\].*m-profile-\[(.*?)\] m-model-\[(.*?)\]", said
        )
        if found is None:
            raise Wrong(said)
        return found[1], found[2], found[3]

    def load(self, sample: bytes) -> None:
        said = self.command(f"db load {len(sample)}")
        if said[0] != f"m-[Expecting {len(sample)} bytes]":
            raise Wrong(said[0])
        for at in range(0, len(sample), CHUNK):
            said = self.command(f"db {sample[at : at + CHUNK].hex()}")
        if "m-load-done" not in said:
            raise Wrong(f"m-load-done is missing: {said}")

    def infer(self, count: int, warm: int = 0) -> tuple[float, list[float]]:
        """Seconds of all runs, and the results of the last."""
        said = self.command(f"infer {count} {warm}")
        laps = [int(x[9:]) for x in said if x.startswith("m-lap-us-")]
        results = [x[11:-1] for x in said if x.startswith("m-results-[")]
        if len(laps) != 2 or len(results) != 1:
            raise Wrong(f"two times and results: {said}")
        return (laps[1] - laps[0]) / 1e6, [float(x) for x in results[0].split(",")]


def accuracy(dut: Dut, samples: Sequence[bytes], labels: Sequence[int]) -> float:
    """Share of samples whose greatest result is the label."""
    good = 0
    for sample, label in zip(samples, labels, strict=True):
        dut.load(sample)
        _, found = dut.infer(1)
        good += int(np.argmax(found)) == label
    return good / len(labels)


def performance(
    dut: Dut, samples: Sequence[bytes], seconds: float
) -> tuple[int, float]:
    """Runs of each sample, at least so many seconds, and the median of inferences a
    second."""
    count, found = 10, []
    for sample in samples:
        dut.load(sample)
        spent, _ = dut.infer(count, 1)
        while spent < seconds:
            count = int(count * min(10.0, 1.3 * seconds / max(spent, 1e-3))) + 1
            spent, _ = dut.infer(count, 1)
        found.append(count / spent)
    return count, statistics.median(found)


def made_data(model: pybuild.Model, count: int, kind: str) -> list[bytes]:
    """Seeded samples as bytes of that kind; rules of the data sets are theirs."""
    graph = model.graph
    tensor = graph.tensor(graph.inputs[0])
    rng = np.random.default_rng(0)
    size = int(np.prod(tensor.shape))
    if kind == "pixels":
        return [rng.integers(0, 256, size, np.uint8).tobytes() for _ in range(count)]
    if kind == "floats" or tensor.dtype.numpy == np.float32:
        drawn = (rng.normal(size=size).astype("<f4") for _ in range(count))
        return [one.tobytes() for one in drawn]
    drawn_bytes = (rng.integers(-128, 128, size, np.int8) for _ in range(count))
    return [one.tobytes() for one in drawn_bytes]


def expected(model: pybuild.Model, samples: Sequence[bytes], kind: str) -> list[int]:
    """The class that this machine finds, in place of a label."""
    graph = model.graph
    tensor = graph.tensor(graph.inputs[0])
    net, found = model.build().host(), []
    for sample in samples:
        if kind == "pixels":
            value = np.frombuffer(sample, np.uint8).astype(np.int16)
            value = value if tensor.dtype.numpy == np.float32 else value - 128
        else:
            value = np.frombuffer(sample, tensor.dtype.numpy)
        given = value.astype(tensor.dtype.numpy).reshape(tensor.shape)
        (out,) = net(**{graph.inputs[0]: given}).values()
        found.append(int(np.argmax(out)))
    return found


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("model")
    words.add_argument("port")
    words.add_argument("--baud", type=int, default=115200)
    words.add_argument("--sample", choices=SAMPLES, default="raw")
    words.add_argument("--samples", type=int, default=5)
    words.add_argument("--seconds", type=float, default=10.0)
    given = words.parse_args()
    model = pybuild.load(given.model)
    samples = made_data(model, given.samples, given.sample)
    line = opened(given.port, given.baud)
    try:
        dut = Dut(line)
        if given.port.startswith("qemu:"):
            dut.lines()  # of the start
        name, profile, version = dut.about()
        print(f"{name}: {profile}, {version}")
        if given.sample != "floats":
            labels = expected(model, samples, given.sample)
            print(f"accuracy: {100 * accuracy(dut, samples, labels):.1f} %")
        count, rate = performance(dut, samples, given.seconds)
        print(f"performance: {rate:.3f} inferences a second, {count} runs a sample")
    finally:
        line.close()


if __name__ == "__main__":
    main()
