"""The options of every verb; knows nothing of what they do."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from pybuild import __version__
from pybuild.cli import boards, params
from pybuild.cli.boards import INPUTS
from pybuild.cli.quantise import quantise_options

USAGE = 64

ROUNDINGS = ("litert", "tflm", "single", "onnx")
REFERENCES = ("auto", "litert", "tflm", "ort", "numpy")
COMPRESSIONS = ("none", "lz4", "lz4-layer")
SIZE = re.compile(r"(\d+)\s*(|[kKmM])(i?[bB])?")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit code 64; stdout stays empty, it is for results."""
        self.exit(USAGE, f"{self.format_usage()}{self.prog}: {message}\n")


def size(text: str) -> int:
    """Bytes of 4096, 64K or 1M; K is 1024."""
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size like 4096, 64K or 1M")
    return int(found[1]) * {"": 1, "k": 1024, "m": 1024**2}[found[2].lower()]


def count(text: str) -> int:
    """A number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1")
    return int(text)


def input_dim(text: str) -> tuple[str, int]:
    name, equals, value = text.rpartition("=")
    if not name or not equals or not value.isdigit() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=NUMBER")
    return name, int(value)


def input_value(text: str) -> tuple[str, list[float]]:
    """NAME=1,3,-1: whole numbers stay whole."""
    name, equals, value = text.rpartition("=")
    try:
        numbers = [float(part) for part in value.split(",")] if name else []
    except ValueError:
        numbers = []
    if not equals or not numbers:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=NUMBER,NUMBER,...")
    return name, [int(n) if n.is_integer() else n for n in numbers]


def state(text: str) -> tuple[str, str]:
    """OUTPUT=INPUT, the input first."""
    end, equals, name = text.rpartition("=")
    if not end or not equals or not name:
        raise argparse.ArgumentTypeError(f"'{text}' is not OUTPUT=INPUT")
    return name, end


def group(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def layout(text: str) -> tuple[str, str]:
    name, equals, value = text.rpartition("=")
    if not name or not equals or value not in ("nhwc", "nchw"):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=nhwc or NAME=nchw")
    return name, value


def device(text: str) -> tuple[int, str]:
    number, equals, target = text.partition("=")
    if not equals or not target or not number.isdigit() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not NUMBER=CPU, from 1 on")
    return int(number), target


def place(text: str) -> tuple[str, int | str]:
    what, equals, to = text.rpartition("=")
    if not equals or not what or not to:
        raise argparse.ArgumentTypeError(f"'{text}' is not WHAT=NUMBER")
    return what, int(to) if to.isdigit() else to


def parser() -> argparse.ArgumentParser:
    """Of the whole command; the verb is in `verb`."""
    top = _Parser(prog="crt", description="Neural networks as static C.")
    top.add_argument("--version", action="version", version=f"crt {__version__}")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    inspect = _verb(verbs, "inspect", "what a model holds, and every problem at once")
    build = _verb(verbs, "build", "a model as a tree of sources", nargs="+")
    check = _verb(verbs, "check", "compare every back end with a reference")
    bench = _verb(verbs, "bench", "time a model, whole and by layer")
    run = _verb(verbs, "run", "run a model once, here or on a board")
    debug = _verb(verbs, "debug", "what each layer of a run gives, and where it errs")
    for verb in (inspect, build, check, bench, run, debug):
        _build_options(verb, words=verb not in (run, debug))
        quantise_options(verb)
        verb.set_defaults(emit="c")
    build.add_argument("-o", "--out", required=True, metavar="DIR")
    text = "plans from the smallest to the fastest; FILE.svg: drawn, too"
    inspect.add_argument("--ram-curve", nargs="?", const="", metavar="FILE", help=text)
    text = "C sources, or an object for --target that no compiler is needed for"
    build.add_argument("--emit", choices=("c", "obj"), default="c", help=text)
    _image_options(build)
    build.add_argument(
        "--force", action="store_true", help="write into a folder with other files"
    )
    _check_options(check)
    _bench_options(bench)
    boards.run_options(run)
    for verb in (check, bench, run):
        boards.device_options(verb)
    _debug_options(debug)
    text = "pack, list, verify and convert parameter files"
    params.add_parsers(verbs.add_parser("params", help=text, description=text))
    text = "list the boards, or write what a firmware project needs of one"
    boards.add_parser(verbs.add_parser("boards", help=text, description=text))
    return top


def _verb(
    verbs: argparse._SubParsersAction[_Parser],
    name: str,
    text: str,
    nargs: str | None = None,
) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    what = "a .tflite or .onnx file"
    if nargs:
        verb.add_argument("models", nargs=nargs, metavar="MODEL", help=what)
    else:
        verb.add_argument("model", metavar="MODEL", help=what)
    verb.add_argument("--json", action="store_true", help="one JSON object on stdout")
    return verb


def _build_options(verb: argparse.ArgumentParser, words: bool = True) -> None:
    add = verb.add_argument_group("build").add_argument
    text = "prefix of every C name; default: the file's name"
    add("--name", action="append", default=[], metavar="[MODEL=]NAME", help=text)
    add("--target", metavar="CPU", help="whose instructions to use")
    text = "a further device and its CPU; --place says what it computes"
    add("--device", type=device, action="append", default=[], metavar="N=CPU",
        help=text)  # fmt: skip
    text = "a layer, operator, input:NAME, output:NAME or * (others) on a device"
    add("--place", type=place, action="append", default=[], metavar="WHAT=N",
        help=text)  # fmt: skip
    add("--ram-limit", type=size, metavar="SIZE", help="fail above it, like 64K")
    text = "memory of its own: NAME=SIZE[:fast|slow][+weights][+deviceN]"
    add("--region", action="append", default=[], metavar="NAME=SIZE", help=text)
    text = "an input that comes in rows (NAME_push_rows) and is never held whole"
    add("--push", action="append", default=[], metavar="INPUT", help=text)
    add("--rounding", choices=ROUNDINGS, help="whose integer results to equal")
    if words:
        add("--input", choices=INPUTS, default="reuse", help="inputs after run")
    add("--optimise", choices=("size", "balanced", "speed"), default="balanced")
    add("--names", choices=("full", "ids"), default="full", help="strings in flash")
    text = "weights that can be loaded and shared: 'replaceable' for all, or a NAME"
    add("--params", action="append", metavar="NAME", help=text)
    text = "an input without memory, until it is bound"
    add("--lazy", action="append", default=[], metavar="INPUT", help=text)
    text = "rows: layers advance in lock step where that needs less memory"
    add("--plan", choices=("rows", "whole"), default="rows", help=text)
    text = "of weights: unpacked once to RAM, or layer by layer to the arena"
    add("--compress", choices=COMPRESSIONS, default="none", help=text)
    add("--input-dim", type=input_dim, action="append", default=[], metavar="NAME=N")
    text = "an input that decides a shape becomes a constant"
    add("--input-value", type=input_value, action="append", default=[],
        metavar="NAME=N,...", help=text)  # fmt: skip
    text = "room in a result whose size depends on data; NAME_count says how much holds"
    add("--bound", type=input_dim, action="append", default=[], metavar="NAME=N",
        help=text)  # fmt: skip
    text = "of a WHILE whose condition is computed: it has no more, all written out"
    add("--max-turns", type=int, default=0, metavar="N", help=text)
    text = "the axis along which a window slides; each run takes the new FRAMES"
    add("--stream", action="append", default=[], metavar="[INPUT=]AXIS[:FRAMES]",
        help=text)  # fmt: skip
    text = "an input that is what this output was in the run before"
    add("--state", type=state, action="append", default=[], metavar="OUTPUT=INPUT",
        help=text)  # fmt: skip
    add("--layout", type=layout, action="append", default=[], metavar="NAME=nhwc")


def _image_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("several models").add_argument
    many: dict[str, Any] = {"action": "append", "default": []}
    text = "models that never run together: they share their memory"
    add("--exclusive", type=group, **many, metavar="A,B", help=text)
    text = "one buffer for an output and another model's input"
    add("--connect", **many, metavar="A.OUT=B.IN", help=text)


def _check_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("check").add_argument
    add("--ref", choices=REFERENCES, default="auto", help="the reference interpreter")
    add("--samples", type=count, default=20, metavar="N")
    add("--seed", type=int, default=0, metavar="N")
    add("--per-layer", action="store_true", help="compare intermediates too")
    add("--backend", choices=("c", "llvm"), action="append", default=[])


def _bench_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("bench").add_argument
    add("--runs", type=count, default=50, metavar="N")
    add("--seed", type=int, default=0, metavar="N")
    add("--backend", choices=("c", "llvm"), default="llvm")
    add("--against", choices=("litert",), help="time this too, in turn with ours")


def _debug_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("debug").add_argument
    text = "arrays by input name (without, a seeded sample); or as of build"
    add("--input", action="append", default=[], metavar="FILE.npz", help=text)
    add("--ref", choices=REFERENCES, help="the interpreter to compare with")
    add("--backend", choices=("c", "llvm"), default="llvm")
