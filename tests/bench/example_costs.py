"""What the networks of examples/ cost on a simulated board, as a table: the commands
are those that a reader of their pages would type.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import Any

from tests.bench.costs import Row, Table, model
from tests.conftest import ROOT

_QUANTISED = "--input-dim batch=1 --quantise examples/{}/calibration.npz"
_SECOND = "--device 1=cortex-m33 --place conv2d=1 --place depthwise_conv2d=1"
# file, board, options
COMMANDS = (
    ("examples/digits/digits_int8.tflite", "mps2-an386", ""),
    ("examples/keras/digits_int8.tflite", "mps2-an386", ""),
    ("examples/keras/digits.onnx", "mps2-an386", _QUANTISED.format("keras")),
    ("examples/pytorch/digits.onnx", "mps2-an386", _QUANTISED.format("pytorch")),
    ("examples/streams/tcn.onnx", "mps2-an386", "--stream 2"),
    ("examples/streams/tcn.onnx", "mps2-an386", ""),
    ("examples/streams/tcn.onnx", "mps2-an386", "--plan whole"),
    ("kws_int8.tflite", "mps2-an521", ""),
    ("kws_int8.tflite", "mps2-an521", _SECOND),
)


def examples() -> Table:
    rows = [
        (f"{file} --on {board} {options}".strip(), *_figures(file, board, options))
        for file, board, options in COMMANDS
    ]
    says = (
        "One warm inference of the networks of `examples`, C by gcc: `crt bench` with "
        "these arguments. Of two cores each is counted without waiting; begin to end: "
        "if both execute as many instructions a second. RAM: arena, instance and "
        "stack; flash with the runtime."
    )
    columns = ("crt bench", "instructions", "second core", "begin to end", "RAM",
               "flash")  # fmt: skip
    return Table("Examples", says, columns, tuple(rows))


def _figures(file: str, board: str, options: str) -> Row:
    path = ROOT / file if file.startswith("examples") else model(file)
    words = [path, "--on", board, "--toolchain", "gcc", "--json", *shlex.split(options)]
    command = [sys.executable, "-m", "pybuild.cli", "bench", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    said: dict[str, Any] = json.loads(done.stdout)
    first, *further = said["cores"]
    both = (further[0], said["wall"]) if further and further[0] else ("", "")
    ram = sum(said["ram"][part] for part in ("arena", "instance", "stack"))
    parts = ("runtime", "kernels", "tables", "weights")
    return first, *both, ram, sum(said["flash"][part] for part in parts)
