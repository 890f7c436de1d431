"""What TensorFlow Lite Micro makes of files that LiteRT does not compute, or computes
otherwise: tflm.json, written by `python -m tests.tflm` where tflite-micro is installed.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Iterable

import numpy as np

from pybuild.dtype import Array
from tests.conftest import ROOT
from tests.tflite_files import One
from tests.tflite_recurrent import LSTM, lstm, svdf_of

PAGE = ROOT / "tests" / "frontends" / "tflm.json"
RUNS, FILES = 3, 8
# name -> operator, type of the input, how it is drawn
KINDS: dict[str, tuple[str, str, Callable[[One], None]]] = {
    "lstm int8": (LSTM, "int8", lstm),
    "lstm int16": (LSTM, "int16", lstm),
    "svdf int8": ("SVDF", "int8", lambda one: svdf_of(one, "int16", True)),
    "svdf int8, state int8": ("SVDF", "int8", lambda one: svdf_of(one, "int8", True)),
}


def drawn(name: str, number: int) -> One:
    code, kind, draw = KINDS[name]
    seed = zlib.crc32(f"{name}-{number}".encode())
    one = One(code, kind, np.random.default_rng(seed))
    draw(one)
    return one


def mark(outputs: Iterable[Array]) -> int:
    """One number for the values of all runs."""
    return zlib.crc32(b"".join(np.ascontiguousarray(y).tobytes() for y in outputs))


def theirs(one: One) -> list[Array]:
    from tflite_micro import runtime  # type: ignore[import-not-found]

    net = runtime.Interpreter.from_bytes(one.bytes())
    made = []
    for (x,) in (sample.values() for sample in one.samples(RUNS)):
        net.set_input(x, 0)
        net.invoke()
        made.append(np.array(net.get_output(0)))
    return made


def main() -> int:
    found = {
        name: [mark(theirs(drawn(name, number))) for number in range(FILES)]
        for name in KINDS
    }
    PAGE.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
