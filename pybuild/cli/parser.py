"""The parser of the command line: verbs and options; values are read later."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from pybuild import __version__
from pybuild.cli import params, rebuild
from pybuild.cli.options import add_options
from pybuild.errors import USAGE, fitting
from pybuild.files.say import say
from pybuild.options.option import british, of_words
from pybuild.options.table import TOOLCHAINS, VERBS
from pybuild.project.read import FILE
from pybuild.traces.command import add_parser as trace_parser

SHELLS = ("bash", "zsh", "fish", "powershell")
_CODES = """exit codes: 0 ok, 1 a value differs, 2 the model is not supported or
invalid, 3 a limit is exceeded, 4 the reference crashed or did not end, 64 wrong
usage, 130 Ctrl-C, 141 output pipe closed"""
_MODEL = "a .tflite, .onnx or .pt2 file, or graph JSON; or a name in crt.toml"
ABOUT = {
    "inspect": "show the layers of a model and what they cost, or all its problems",
    "build": "turn a model into a folder of C sources",
    "report": "write an HTML page of what a model costs; MODEL may be a built folder",
    "compare": "compare two builds: bytes, instructions, kernels",
    "check": "compare the generated code with a reference",
    "bench": "measure a model, in total and by layer",
    "run": "run a model once, here or on a board",
    "debug": "show what each layer computes, and the first layer that is wrong",
    "fit": "list all chips: what the model needs on each, and how long it takes",
    "sweep": "build every combination of options that a project file lists",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Ends with exit code 64; writes nothing to stdout, which is for results."""
        more = "" if "?" in message else f". Hint: {self.prog} --help"
        self.exit(USAGE, f"{self.prog}: {message}{more}\n")


class _Completion(argparse.Action):
    """Prints the completion script of a shell, and ends with 0."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: object,
        option_string: str | None = None,
    ) -> None:  # fmt: skip
        from argcomplete.shell_integration import shellcode

        say(shellcode(["crt"], shell=str(values)))
        parser.exit()


# words that people try as verbs
_OPTIONS_AS_VERBS = dict.fromkeys(
    ("quantise", "quantize"), "crt build MODEL --quantise SAMPLES.npz does it"
)


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """The words as a namespace, without attributes for options that were not given.

    Errors  SystemExit of code USAGE, also for `--name=--`, which argparse would accept
    """
    top = parser(next((word for word in words if word[:1] != "-"), None))
    words = _british(words, top)
    for word in words:
        if word.startswith("--") and word.endswith("=--"):
            top.error(f"argument {word[:-3]}: '--' is not a value")
    verbs = commands(top)
    if words and not words[0].startswith("-") and words[0] not in verbs:
        hint = _OPTIONS_AS_VERBS.get(words[0]) or fitting(words[0], verbs)
        top.error(f"there is no verb '{words[0]}': {hint}")
    actions = commands(verbs[words[0]]) if words and words[0] in verbs else {}
    if actions and words[1:] and words[1][:1] != "-" and words[1] not in actions:
        what = f"there is no action '{words[1]}'"
        verbs[words[0]].error(f"{what}: {fitting(words[1], actions)}")
    args, unknown = top.parse_known_args(words)
    if args.verb == "inspect":  # a word behind options, which argparse does not take
        layers = [word for word in unknown if word[:1] != "-"][:1]
        args.layer = layers[0] if layers and hasattr(args, "stage") else None
        unknown = [word for word in unknown if word != args.layer]
    if unknown:
        command = verbs[args.verb]
        inner = commands(command)
        command = inner[args.action] if inner else command
        command.error("; ".join(_unknown(word, command) for word in unknown))
    return args


def _british(words: Sequence[str], top: argparse.ArgumentParser) -> list[str]:
    """The words with options as they are spelled here: --optimise for --optimize."""
    verb = commands(top).get(words[0] if words else "")
    known = [] if verb is None else list(verb._option_string_actions)
    made = []
    for word in words:
        name, equals, value = word.partition("=")
        made.append(british(name, known) + equals + value if name[:2] == "--" else word)
    return made


def commands(command: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of its verbs or actions, by name."""
    found = [a.choices for a in command._actions if isinstance(a.choices, dict)]
    return found[0] if found else {}


def _unknown(word: str, command: argparse.ArgumentParser) -> str:
    if not word.startswith("-"):
        return f"unexpected argument '{word}'"
    name = word.partition("=")[0]
    hint = fitting(name, [o for o in command._option_string_actions if o[:2] == "--"])
    return f"there is no option {name}: {hint}"


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of the whole command; its result has the verb in `verb`.

    only  the verb that is used; other verbs get no options, which saves time
    """
    top = _Parser(prog="crt", description="Neural networks as static C.", epilog=_CODES)
    top.add_argument("--version", action="version", version=f"crt {__version__}")
    top.add_argument(
        "--completion", action=_Completion, choices=SHELLS, metavar="SHELL",
        help=f"print the completion script for this shell: {', '.join(SHELLS)}",
    )  # fmt: skip
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, kinds in VERBS.items():
        text = ABOUT[name]
        verb = verbs.add_parser(name, help=text, description=text, allow_abbrev=False)
        if only is not None and name != only:
            continue
        if name == "build":
            verb.add_argument("models", nargs="*", metavar="MODEL", help=_MODEL)
        elif name == "compare":
            text = "a model, 'MODEL --option ...' in quotes, or a built folder"
            verb.add_argument("one", metavar="A", help=text)
            verb.add_argument("other", metavar="B", help="the same")
        elif name == "sweep":
            text = f"the project file with [sweeps.NAME]; default: {FILE}"
            verb.add_argument("file", nargs="?", metavar="FILE", help=text)
        else:
            verb.add_argument("model", nargs="?", metavar="MODEL", help=_MODEL)
        verb.add_argument(
            "--json", action="store_true", help="one JSON object on stdout"
        )
        if name != "sweep":
            text = "show the names of layers and tensors as they are in the file"
            verb.add_argument("--long", action="store_true", help=text)
        add_options(verb, of_words(*kinds))
    text = "write a crt.toml for a model, with every option in a comment"
    _init(verbs.add_parser("init", help=text, description=text))
    text = "build a tree again from its report.json, and say whether bytes differ"
    rebuild.add_parser(verbs.add_parser("rebuild", help=text, description=text))
    text = "show how long layers took on a device, and write files for viewers"
    trace_parser(verbs.add_parser("trace", help=text, description=text))
    text = "pack, list, verify and convert parameter files"
    params.add_parsers(verbs.add_parser("params", help=text, description=text))
    text = "list the boards, or write the files of one for a firmware project"
    _boards(verbs.add_parser("boards", help=text, description=text))
    return top


def _boards(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("board", nargs="?", metavar="BOARD", help="show only this board, or folder")
    text = "write its start-up code, linker script and Meson files"
    add("-o", "--out", metavar="DIR", help=text)
    text = "the compiler to write them for; default: the first that is installed"
    add("--toolchain", choices=TOOLCHAINS, default="auto", help=text)
    add("--json", action="store_true", help="one JSON object on stdout")


def _init(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help="a .tflite, .onnx or .pt2 file, or graph JSON")
    add("--name", help="prefix of every C name; default: the file's name")
    text = f"the file to write; default: {FILE}"
    add("-o", "--out", metavar="FILE", default=FILE, help=text)
    add("--force", action="store_true", help="overwrite an existing file")
    add("--json", action="store_true", help="one JSON object on stdout")
