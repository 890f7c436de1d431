"""Interpreters of others in a process of their own, where they may crash or hang: the
side that asks. `verify/child.py` is the side that answers.

One process serves all models, so that packages are imported once. What goes between is
JSON and plain arrays; our own graph goes there as it is, nothing is unpickled here.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import io
import json
import os
import pickle
import queue
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import IO, Any

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem
from pybuild.ir.graph import Graph

SECONDS = 600.0  # for a model to be loaded, or for one sample
CRASHED = 4  # the exit code
_ROOT = str(Path(__file__).resolve().parents[2])

Answer = tuple[dict[str, Any], dict[str, Array]]
Run = Callable[[Mapping[str, Array]], dict[str, Array]]
_numbers = count()
_gone: list[int] = []  # runs that nobody has any more


class ReferenceCrashed(BuildError):
    """An interpreter ended without an answer, or gave none in time."""

    @property
    def exit_code(self) -> int:
        return CRASHED


class Lacking(BuildError):
    """LiteRT has no reference kernel: its other kernels are a step off where they
    compute with integers."""


def possible() -> bool:
    """Not in a program that has Python inside: it cannot start another Python."""
    return bool(sys.executable)


def send(
    stream: IO[bytes], told: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """One message: a line of JSON, then the arrays that it names."""
    data = io.BytesIO()
    for value in arrays.values():
        np.lib.format.write_array(data, np.asarray(value), allow_pickle=False)
    line = json.dumps({**told, "arrays": list(arrays), "bytes": data.tell()})
    stream.write(line.encode() + b"\n")
    stream.write(data.getbuffer())
    stream.flush()


def receive(stream: IO[bytes]) -> Answer | None:
    """None: there is no further message."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    told = json.loads(line)
    data = io.BytesIO(stream.read(told["bytes"]))
    read = functools.partial(np.lib.format.read_array, data, allow_pickle=False)
    return told, {name: read() for name in told["arrays"]}


class _Child:
    """A child process and its output."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        paths = [_ROOT, *(p for p in sys.path if p), os.environ.get("PYTHONPATH", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pybuild.verify.child"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env,
        )  # fmt: skip
        self.said: queue.Queue[Answer | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        answer: Answer | None = None
        while True:
            try:
                answer = receive(self.process.stdout)
            except (OSError, ValueError, EOFError):  # it ended in the middle
                answer = None
            self.said.put(answer)
            if answer is None:
                return

    def ask(self, told: Mapping[str, Any], arrays: Mapping[str, Array]) -> Answer | str:
        """Its answer, or how it ended."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended: that is told below
            send(self.process.stdin, told, arrays)
        try:
            answer = self.said.get(timeout=SECONDS)
        except queue.Empty:
            self.end()
            return f"gave no answer in {SECONDS:g} seconds"
        if answer is not None:
            return answer
        return f"crashed ({_ending(self.end())})"

    def end(self) -> int:
        """Its exit code; a process that runs is ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(0.5)
        self.process.kill()
        return self.process.wait()


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code & 0xFFFFFFFF:#x}"


_lock = threading.Lock()
_children: list[_Child] = []


def _child() -> _Child:
    if _children and _children[0].owner == os.getpid():
        return _children[0]
    _children[:] = [_Child()]
    return _children[0]


@atexit.register
def close() -> None:
    """Ends the process, if there is one; the next question starts another."""
    for child in _children:
        if child.owner == os.getpid():
            child.process.kill()
            child.process.wait()
    _children.clear()


def ask(
    path: Path,
    what: str,
    told: Mapping[str, Any],
    arrays: Mapping[str, Array],
    hint: str = "--ref numpy",
) -> Answer:
    """The answer of the process.

    what    the interpreter, for messages
    hint    what the user may do where it crashes
    Errors  BuildError, as it was raised there; ReferenceCrashed
    """
    with _lock:
        gone = [_gone.pop() for _ in range(len(_gone))]
        answer = _child().ask({**told, "gone": gone}, arrays)
        if isinstance(answer, str):
            _children.clear()
    if isinstance(answer, str):
        raise ReferenceCrashed(path.name, f"{what} {answer}", hint)
    problems = [Problem(*one) for one in answer[0].get("problems", ())]
    if problems:
        raise (Lacking if answer[0]["lacking"] else BuildError).of(problems)
    return answer


def loaded(
    path: Path, what: str, kind: str, graph: Graph, every: bool = True,
    hint: str = "--ref numpy",
) -> tuple[dict[str, Any], Run]:  # fmt: skip
    """An interpreter with a model: what it says of itself, and a run of it. The process
    holds it as long as the run is there.

    Errors  as of ask(), in a run too
    """
    number = next(_numbers)
    told = {"number": number, "kind": kind, "path": str(path.resolve())}
    facts, _ = ask(path, what, {**told, "every": every}, {"graph": bare(graph)}, hint)

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        return ask(path, what, {"number": number}, inputs, hint)[1]

    weakref.finalize(run, _gone.append, number).atexit = False
    return facts, run


def bare(graph: Graph) -> Array:
    """A graph without its weights, as bytes: an interpreter reads them in the file."""
    constants = {n: np.zeros(0, v.dtype) for n, v in graph.constants.items()}
    data = pickle.dumps(replace(graph, constants=constants))
    return np.frombuffer(data, np.uint8)
