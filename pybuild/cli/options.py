"""The options of every verb; knows nothing of what they do."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from pybuild import __version__
from pybuild.cli import boards, params
from pybuild.cli.boards import INPUTS
from pybuild.cli.quantise import quantise_options

USAGE = 64

ROUNDINGS = ("litert", "tflm", "single", "onnx")
REFERENCES = ("auto", "litert", "tflm", "ort", "numpy")
COMPRESSIONS = ("none", "lz4", "lz4-layer")
_CODES = """exit codes: 0 ok, 1 a value differs, 2 the model is not supported or
invalid, 3 a limit is exceeded, 64 wrong usage"""
_SEED = "of the random inputs; default 0"
_ON_THIS_MACHINE = "generated C, or LLVM at once (the default)"
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


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Errors  SystemExit of code USAGE; argparse itself takes `--name=--` for a list"""
    top = parser()
    for word in words:
        if word.startswith("--") and word.endswith("=--"):
            top.error(f"argument {word[:-3]}: '--' is no value")
    return top.parse_args(words)


def parser() -> argparse.ArgumentParser:
    """Of the whole command; the verb is in `verb`."""
    top = _Parser(prog="crt", description="Neural networks as static C.", epilog=_CODES)
    top.add_argument("--version", action="version", version=f"crt {__version__}")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    inspect = _verb(
        verbs, "inspect", "show what a model holds, and every problem at once"
    )
    build = _verb(verbs, "build", "turn a model into a folder of C sources", nargs="+")
    check = _verb(verbs, "check", "compare the generated code with a reference")
    bench = _verb(verbs, "bench", "measure a model, whole and by layer")
    run = _verb(verbs, "run", "run a model once, here or on a board")
    debug = _verb(
        verbs, "debug", "show what each layer computes, and the first that is wrong"
    )
    for verb in (inspect, build, check, bench, run, debug):
        _build_options(verb, words=verb not in (run, debug))
        quantise_options(verb)
        verb.set_defaults(emit="c")
    text = "the folder to write"
    build.add_argument("-o", "--out", required=True, metavar="DIR", help=text)
    text = "list plans from the smallest to the fastest; FILE.svg: draw them too"
    inspect.add_argument("--ram-curve", nargs="?", const="", metavar="FILE", help=text)
    text = "C sources, or an object for --target, which needs no compiler"
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
    what = "a .tflite or .onnx file, or graph JSON"
    if nargs:
        verb.add_argument("models", nargs=nargs, metavar="MODEL", help=what)
    else:
        verb.add_argument("model", metavar="MODEL", help=what)
    verb.add_argument("--json", action="store_true", help="one JSON object on stdout")
    return verb


def _build_options(verb: argparse.ArgumentParser, words: bool = True) -> None:
    """words: --input says what becomes of inputs, not which file has them."""
    _code_options(verb)
    _memory_options(verb, words)
    _input_options(verb)
    _weight_options(verb)
    _device_options(verb)


def _code_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("code").add_argument
    text = "prefix of every C name; default: the file's name"
    add("--name", action="append", default=[], metavar="[MODEL=]NAME", help=text)
    text = "use this CPU's instructions, like cortex-m4; default: those of any CPU"
    add("--target", metavar="CPU", help=text)
    text = "what to save: bytes of code, instructions, or both (balanced, the default)"
    add("--optimise", choices=("size", "balanced", "speed"), default="balanced",
        help=text)  # fmt: skip
    text = "whose integers to equal; default: litert for .tflite, onnx for .onnx"
    add("--rounding", choices=ROUNDINGS, help=text)
    text = "names of tensors in flash: all (the default), or none, only numbers"
    add("--names", choices=("full", "ids"), default="full", help=text)


def _memory_options(verb: argparse.ArgumentParser, words: bool) -> None:
    add = verb.add_argument_group("memory").add_argument
    text = "most bytes of RAM, like 64K: the fastest plan that fits, or an error"
    add("--ram-limit", type=size, metavar="SIZE", help=text)
    text = "rows (the default): layers advance together where that needs less RAM"
    add("--plan", choices=("rows", "whole"), default="rows", help=text)
    text = "a memory of its own: NAME=SIZE[:fast|slow][+weights][+deviceN]"
    add("--region", action="append", default=[], metavar="NAME=SIZE", help=text)
    if words:
        text = (
            "after a run, inputs are gone (reuse, the default) or still there (keep);"
        )
        text += " consumable: overwritten while they are read"
        add("--input", choices=INPUTS, default="reuse", help=text)
    text = "an input that is pushed row by row (NAME_push_rows), never held whole"
    add("--push", action="append", default=[], metavar="INPUT", help=text)
    text = "an input or output without memory until it is bound"
    add("--lazy", action="append", default=[], metavar="NAME", help=text)
    text = "an input that is what this output was in the run before"
    add("--state", type=state, action="append", default=[], metavar="OUTPUT=INPUT",
        help=text)  # fmt: skip
    text = "the axis along which a window slides; each run takes the new FRAMES"
    add("--stream", action="append", default=[], metavar="[INPUT=]AXIS[:FRAMES]",
        help=text)  # fmt: skip


def _input_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("what the model file leaves open").add_argument
    text = "the size of a dimension, by its name"
    add("--input-dim", type=input_dim, action="append", default=[], metavar="NAME=N",
        help=text)  # fmt: skip
    text = "the value of an input that decides a shape; it becomes a constant"
    add("--input-value", type=input_value, action="append", default=[],
        metavar="NAME=N,...", help=text)  # fmt: skip
    text = "room for a result whose size depends on data; NAME_count says how much is"
    add("--bound", type=input_dim, action="append", default=[], metavar="NAME=N",
        help=text + " used")  # fmt: skip
    text = "most turns of a WHILE whose condition is computed; all are written out"
    add("--max-turns", type=int, default=0, metavar="N", help=text)
    text = "an input or output has channels last (nhwc) or first (nchw)"
    add("--layout", type=layout, action="append", default=[], metavar="NAME=nhwc",
        help=text)  # fmt: skip


def _weight_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("weights").add_argument
    text = "weights that can be loaded and shared: 'replaceable' for all, or a NAME"
    add("--params", action="append", metavar="NAME", help=text)
    text = "pack weights: unpacked once to RAM (lz4) or by layer to the arena"
    add("--compress", choices=COMPRESSIONS, default="none", help=text)


def _device_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("devices").add_argument
    text = "a further device and its CPU; --place says what it computes"
    add("--device", type=device, action="append", default=[], metavar="N=CPU",
        help=text)  # fmt: skip
    text = "which device computes a layer or operator, or has input:NAME or"
    text += " output:NAME; * is all others"
    add("--place", type=place, action="append", default=[], metavar="WHAT=N",
        help=text)  # fmt: skip


def _image_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("several models").add_argument
    many: dict[str, Any] = {"action": "append", "default": []}
    text = "models that never run together, so that they share their memory"
    add("--exclusive", type=group, **many, metavar="A,B", help=text)
    text = "one buffer for an output and another model's input"
    add("--connect", **many, metavar="A.OUT=B.IN", help=text)


def _check_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("check").add_argument
    add("--ref", choices=REFERENCES, default="auto", help="the reference interpreter")
    text = "how many random inputs to compare; default 20"
    add("--samples", type=count, default=20, metavar="N", help=text)
    add("--seed", type=int, default=0, metavar="N", help=_SEED)
    text = "compare the results of every layer, not of the last alone"
    add("--per-layer", action="store_true", help=text)
    text = "compare this back end only; default: both"
    add("--backend", choices=("c", "llvm"), action="append", default=[], help=text)


def _bench_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("bench").add_argument
    add("--runs", type=count, default=50, metavar="N", help="default 50")
    add("--seed", type=int, default=0, metavar="N", help=_SEED)
    add("--backend", choices=("c", "llvm"), default="llvm", help=_ON_THIS_MACHINE)
    add("--against", choices=("litert",), help="time this too, in turn with ours")


def _debug_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("debug").add_argument
    text = "arrays by input name (default: random ones); or a word, as in build"
    add("--input", action="append", default=[], metavar="FILE.npz", help=text)
    add("--ref", choices=REFERENCES, help="the interpreter to compare with")
    add("--backend", choices=("c", "llvm"), default="llvm", help=_ON_THIS_MACHINE)
