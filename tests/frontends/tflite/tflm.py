"""What TensorFlow Lite Micro makes of random files: which operators it registers, which
types each takes, and the integers that it gives. tflm.json holds it, written by
`python -m tests.frontends.tflite.tflm` where tflite-micro is installed.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import tflite

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.frontends.tflite.reader.flat import names_of
from pybuild.model import Model
from tests.conftest import ROOT
from tests.frontends.tflite.cases import compiled
from tests.frontends.tflite.draws import DRAWS
from tests.frontends.tflite.draws import drawn as drawn_case
from tests.frontends.tflite.files import One
from tests.frontends.tflite.recurrent import LSTM, lstm, svdf_of
from tests.ops.tflite_writer import FileOperator, FileTensor, write

PAGE = ROOT / "tests" / "frontends" / "tflm.json"
RUNS, FILES, EACH = 3, 8, 3
TYPES = ("float32", "int8", "uint8", "int16", "int32", "int64", "bool")
# name -> operator, type of the input, how it is drawn
KINDS: dict[str, tuple[str, str, Callable[[One], None]]] = {
    "lstm int8": (LSTM, "int8", lstm),
    "lstm int16": (LSTM, "int16", lstm),
    "svdf int8": ("SVDF", "int8", lambda one: svdf_of(one, "int16", True)),
    "svdf int8, state int8": ("SVDF", "int8", lambda one: svdf_of(one, "int8", True)),
    "add int16, powers of 2": ("ADD", "int16", lambda one: _powers(one)),
    "sub int16, powers of 2": ("SUB", "int16", lambda one: _powers(one)),
    "relu int16, many": (
        "RELU", "int16", lambda one: _many(one, 1.7555847e-4, 9.198919e-4)
    ),
    "leaky int16, many": (
        "LEAKY_RELU", "int16", lambda one: _many(one, 1.0388379e-4, 1.0685319e-4)
    ),
}  # fmt: skip
# of which it makes something without a meaning
MEANINGLESS = {
    "GREATER int16": "computes with numbers that it never sets",
    **{
        f"LOGICAL_{name} {kind}": "reads its bytes as bool"
        for name in ("AND", "OR")
        for kind in TYPES
        if kind != "bool"
    },
}
# given as float32, yet the same everywhere: one product
EXACT = ("DEQUANTIZE", "EMBEDDING_LOOKUP")


@cache
def page() -> dict[str, Any]:
    """version    of tflite-micro
    operators  all that it registers
    files      "OPERATOR type" of those that it computes -> of each file a mark,
               "float" where its bits are its own, None where it computes it not
    """
    found: dict[str, Any] = json.loads(PAGE.read_text())
    return found


def types_of(code: str) -> list[str]:
    """The types in which it computes an operator; sorted."""
    names = page()["files"].keys() - MEANINGLESS.keys() - KINDS.keys()
    pairs = (name.split(" ") for name in names)
    return sorted(kind for one, kind in pairs if one == code)


def _powers(one: One) -> None:
    """Of which LiteRT adds the integers themselves."""
    power = one.size(9, 14)
    for less in (0, one.size(1, 3)):
        one.x((3, 50), quant=(2.0 ** (-power - less), 0))
    one.y(quant=(2.0**-power, 0), shape=(3, 50))
    table = "AddOptions" if one.code == "ADD" else "SubOptions"
    one.with_options(table, PotScaleInt16=True)


def _many(one: One, x: float, y: float) -> None:
    """Of whose ratio float32 and float64 give other integers."""
    one.x((16000,), quant=(float(np.float32(x)), 0))
    one.y(quant=(float(np.float32(y)), 0), shape=(16000,))
    if one.code == "LEAKY_RELU":
        one.with_options("LeakyReluOptions", Alpha=0.4903)


def drawn(name: str, number: int) -> One:
    if name not in KINDS:
        return _shaped(*name.split(" "), number)
    code, kind, draw = KINDS[name]
    seed = zlib.crc32(f"{name}-{number}".encode())
    one = One(code, kind, np.random.default_rng(seed))
    draw(one)
    return one


def _shaped(code: str, kind: str, number: int) -> One:
    """With the shapes of its outputs, which Micro reads from the file."""
    one = drawn_case(code, kind, number)
    try:
        graph = load("m.tflite", one.bytes(), {})
        shapes = [graph.tensor(name).shape for name in graph.outputs]
    except BuildError:
        shapes = [np.broadcast_shapes(*(one.tensors[i].shape for i in one.inputs))]
    for index, shape in zip(one.outputs, shapes, strict=False):
        one.tensors[index] = replace(one.tensors[index], shape=shape)
    return one


def mark(outputs: Iterable[Array]) -> int:
    """One number for the values of all runs."""
    return zlib.crc32(b"".join(np.ascontiguousarray(y).tobytes() for y in outputs))


def ours(
    cases: Sequence[tuple[str, int]], root: Path, rounding: str = "tflm"
) -> list[dict[str, int]]:
    """Of each case what C and LLVM make."""
    libraries = []
    for at, (name, number) in enumerate(cases):
        graph = load("m.tflite", drawn(name, number).bytes(), {})
        model = Model("m.tflite", graph, "litert", "0" * 64)
        libraries.append(model.build(name=f"m{at}", rounding=rounding))
    nets = compiled(libraries, root, ("c", "llvm"))
    found = []
    for case, library, every in zip(cases, libraries, nets, strict=True):
        marks = {}
        for code, net in every:
            ready: Any = library.host("llvm") if code == "llvm" else net
            made = []
            for sample in drawn(*case).samples(RUNS):
                ready.run(**sample)
                names = library.plan.graph.outputs
                made += [np.array(ready.get_output(name)) for name in names]
            marks[code] = mark(made)
        found.append(marks)
    return found


# ---- where tflite-micro is installed --------------------------------------------


def theirs(data: bytes, samples: Sequence[dict[str, Array]], count: int) -> list[Array]:
    from tflite_micro import runtime  # type: ignore[import-not-found]

    net = runtime.Interpreter.from_bytes(data, arena_size=1 << 20)
    made = []
    for sample in samples:
        for index, x in enumerate(sample.values()):
            net.set_input(x, index)
        net.invoke()
        made += [np.array(net.get_output(index)) for index in range(count)]
    return made


def apart(function: Callable[[], str]) -> tuple[str, str]:
    """What a function gives, and what it prints, in a process that may end."""
    reads, writes = zip(os.pipe(), os.pipe(), strict=True)
    child = os.fork()
    if not child:
        for number in (1, 2):
            os.dup2(writes[1], number)
        try:
            os.write(writes[0], function().encode())
        except Exception as error:
            os.write(2, str(error).encode())
        os._exit(0)
    for number in writes:
        os.close(number)
    texts = []
    for number in reads:
        with os.fdopen(number, "rb") as pipe:
            texts.append(pipe.read().decode(errors="replace"))
    os.waitpid(child, 0)
    return texts[0], texts[1]


def registered() -> list[str]:
    """The builtin operators that it knows, whatever it says of so small a file."""
    found = []
    for code in sorted(names_of(tflite.BuiltinOperator).values()):
        tensors = [FileTensor("x", (4,)), FileTensor("y", (4,))]
        data = write(tensors, [FileOperator(code, (0,), (1,))], [0], [1])
        _, said = apart(partial(told, data, [], 0))
        unknown = code in ("CUSTOM", "DELEGATE") or code.startswith("PLACEHOLDER")
        found += [] if unknown or "Didn't find op" in said else [code]
    return found


def told(data: bytes, samples: Sequence[dict[str, Array]], count: int) -> str:
    made = theirs(data, samples, count)
    real = any(y.dtype.kind == "f" for y in made)
    return ("float " if real else "") + str(mark(made))


def marks_of(name: str, files: int) -> list[int | str | None]:
    """Of each file a mark, "float" where its bits are its own, None: not computed."""
    found: list[int | str | None] = []
    for number in range(files):
        one = drawn(name, number)
        text, _ = apart(partial(told, one.bytes(), one.samples(RUNS), len(one.outputs)))
        free = text.startswith("float ") and name.split(" ")[0] not in EXACT
        found += ["float" if free else int(text.split(" ")[-1]) if text else None]
    return found


def main(chosen: Sequence[str]) -> int:
    """Of the files with these names; of all."""
    names, files = registered(), dict(page()["files"]) if chosen else {}
    pairs = [f"{code} {kind}" for code in names if code in DRAWS for kind in TYPES]
    for name in (*pairs, *KINDS):
        if chosen and name not in chosen:
            continue
        try:
            found = marks_of(name, FILES if name in KINDS else EACH)
        except (IndexError, KeyError, TypeError, ValueError):
            continue  # cannot be drawn
        if any(found):
            files[name] = found
    lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in files.items())
    codes = ",\n".join(f"  {json.dumps(code)}" for code in names)
    version = json.dumps(metadata.version("tflite-micro"))
    PAGE.write_text(
        f'{{\n "version": {version},\n "operators": [\n{codes}\n ],\n'
        f' "files": {{\n{lines}\n }}\n}}\n'
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
