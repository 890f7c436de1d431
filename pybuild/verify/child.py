"""The process in which interpreters of others run: `python -m pybuild.verify.child`.

Reads messages of `verify/apart.py` from its input until that ends. What interpreters
print does not come between the answers: they have the output alone.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from pathlib import Path
from typing import IO, Any

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.verify.apart import Answer, receive, send
from pybuild.verify.reference import Lacking, Reference, loaded_here

_MOST = (
    4  # models that are held: of a check, and of the search for its first difference
)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that asks will end it
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _serve(sys.stdin.buffer, answers)


def _serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    held: dict[int, Reference] = {}
    while (question := receive(questions)) is not None:
        try:
            told, arrays = _answer(held, *question)
        except BuildError as error:
            problems = [(p.where, p.what, p.hint) for p in error.problems]
            told, arrays = {"problems": problems}, {}
            told["lacking"] = isinstance(error, Lacking)
        send(answers, told, arrays)


def _answer(held: dict[int, Reference], told: Any, arrays: dict[str, Array]) -> Answer:
    number = int(told["number"])
    if "kind" not in told:
        return {}, held[number].run(arrays)
    graph = pickle.loads(arrays["graph"].tobytes())  # of our own process
    made = loaded_here(told["kind"], Path(told["path"]), graph, told["every"])
    held[number] = made
    for old in [*held][:-_MOST]:
        del held[old]
    facts = {"name": made.name, "exact": made.exact, "hybrid": made.hybrid}
    return facts, {}


if __name__ == "__main__":
    main()
