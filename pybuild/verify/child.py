"""The process in which interpreters of others run: `python -m pybuild.verify.child`.

Reads messages of `verify/apart.py` from its input. When that ends, whoever asks is
gone, and so is this process, though an interpreter may run. What interpreters print
does not come between the answers: they have the output alone.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import IO, Any

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph
from pybuild.verify.apart import Answer, Lacking, Run, receive, send
from pybuild.verify.onnx_reference import unfused
from pybuild.verify.reference import TIMED, loaded_here, timed_here


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that asks will end it
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    questions: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    heard = os.fdopen(os.dup(sys.stdin.fileno()), "rb"), questions
    threading.Thread(target=_listen, args=heard, daemon=True).start()
    _serve(questions, answers)


def _listen(stream: IO[bytes], questions: queue.SimpleQueue[Answer]) -> None:
    try:
        while (question := receive(stream)) is not None:
            questions.put(question)
    finally:  # of half a message, too
        os._exit(0)


def _serve(questions: queue.SimpleQueue[Answer], answers: IO[bytes]) -> None:
    held: dict[int, Run] = {}
    while True:
        try:
            told, arrays = _answer(held, *questions.get())
        except BuildError as error:
            problems = [(p.where, p.what, p.hint) for p in error.problems]
            told, arrays = {"problems": problems}, {}
            told["lacking"] = isinstance(error, Lacking)
        send(answers, told, arrays)


def _answer(held: dict[int, Run], told: Any, arrays: dict[str, Array]) -> Answer:
    for number in told["gone"]:
        held.pop(number, None)
    if "unfused" in told:
        return {"said": unfused(Path(told["unfused"]))}, {}
    number = int(told["number"])
    if "kind" not in told:
        return {}, held[number](arrays)
    graph = pickle.loads(arrays["graph"].tobytes())  # of our own process
    facts, held[number] = _loaded(told, graph)
    return facts, {}


def _loaded(told: Any, graph: Graph) -> tuple[dict[str, Any], Run]:
    kind, path = told["kind"], Path(told["path"])
    if kind == TIMED:
        name, run = timed_here(path, graph)
        return {"name": name}, run
    made = loaded_here(kind, path, graph, told["every"])
    facts = {"name": made.name, "exact": made.exact, "hybrid": made.hybrid}
    return facts, made.run


if __name__ == "__main__":
    main()
