"""Reference pages that are made of code: the command, crt.toml, report.json, errors, C
headers, the Python API. Texts stand where the code is; here is only their form.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from comments import fields, inline

import pybuild
from pybuild.cli.parser import commands, parser
from pybuild.host.abi import errors
from pybuild.html.schema import schema
from pybuild.options.many import ImageOptions as Images
from pybuild.options.option import of_words
from pybuild.options.packages import PackageOptions
from pybuild.options.table import COMMON, VERBS, BoardOptions
from pybuild.options.table import TreeOptions as Trees

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "crt" / "include" / "crt"
_CODES = re.compile(r"(\d+) ([^,]+)")


def title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n\n"


def plain(text: object) -> str:
    """Text in which no character means anything."""
    return re.sub(r"([\\*`|_])", r"\\\1", str(text))


def code(text: object) -> str:
    return f"``{text}``" if str(text).strip() else ""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [".. list-table::\n   :header-rows: 1\n   :class: wide\n\n"]
    for row in (head, *rows):
        for mark, cell in zip("*" + " " * 99, row, strict=False):
            lines.append(f"   {mark} - {cell}\n")
    return "".join(lines) + "\n"


# ---- the command ------------------------------------------------------------


def command_pages() -> Iterator[tuple[str, str]]:
    """A page for `crt` and for each verb: name, text."""
    top = parser()
    verbs = commands(top)
    rows = [(f":doc:`{name} <crt-{name}>`", plain(_about(top, name))) for name in verbs]
    text = title("crt") + f"{plain(top.description)}\n\n"
    text += _usage(top) + table(("verb", "does"), rows)
    yield "crt", text + _options(top) + _exit_codes(top)
    for name, verb in verbs.items():
        yield f"crt-{name}", _verb(f"crt {name}", verb, "=") + _exit_codes(top)


def _about(command: argparse.ArgumentParser, name: str) -> str:
    for action in command._actions:
        for one in getattr(action, "_choices_actions", ()):
            if one.dest == name:
                return str(one.help)
    raise KeyError(name)


def _usage(command: argparse.ArgumentParser) -> str:
    """What stands where; the options follow below it."""
    made = argparse.HelpFormatter(command.prog, width=200)
    what = [action for action in command._actions if not action.option_strings]
    made.add_usage(None, what, ())
    said = made.format_help().removeprefix("usage: ").strip()
    words = said.removeprefix(command.prog)
    return f".. code-block:: text\n\n   {command.prog} [OPTION ...]{words}\n\n"


def _verb(name: str, command: argparse.ArgumentParser, line: str) -> str:
    text = title(name, line) + f"{plain(command.description or '')}.\n\n"
    text += _usage(command) + f".. program:: {name}\n\n" + _options(command)
    for action, inner in commands(command).items():
        text += _verb(f"{name} {action}", inner, "-")
    return text


def _options(command: argparse.ArgumentParser) -> str:
    text = ""
    for group in command._action_groups:
        shown = [a for a in group._group_actions if not hasattr(a, "_choices_actions")]
        if shown:
            words = {"options": "General", "positional arguments": "What"}
            name = words.get(str(group.title), str(group.title))
            text += f".. rubric:: {plain(name[:1].upper() + name[1:])}\n\n"
            text += "".join(map(_option, shown))
    return text


def _option(action: argparse.Action) -> str:
    value = ""
    if action.nargs != 0:
        value = str(action.metavar or action.dest.upper())
        if action.choices and not action.metavar:
            value = "{" + ",".join(map(str, action.choices)) + "}"
    names = action.option_strings
    heads = ", ".join(f"{name} {value}".strip() for name in names) or value
    help = str(action.help or "").replace("%%", "%")
    return f".. option:: {heads}\n\n   {plain(help)}\n\n"


def exit_codes() -> dict[str, str]:
    """As `crt --help` says them."""
    words = " ".join(str(parser().epilog).split()).partition(": ")[2]
    return dict(_CODES.findall(words))


def _exit_codes(top: argparse.ArgumentParser) -> str:
    rows = [(code(number), plain(what)) for number, what in exit_codes().items()]
    return ".. rubric:: Exit codes\n\n" + table(("code", "means"), rows)


MAN = [
    ("reference/cli/crt", "crt", "neural networks as static C", "pybuild", 1),
    *((f"reference/cli/crt-{name}", f"crt-{name}", _about(parser(), name), "pybuild", 1)
      for name in commands(parser())),
]  # fmt: skip


# ---- files ------------------------------------------------------------------


def crt_toml() -> str:
    """Every key, a value, and where it may stand."""
    text = title("Keys of crt.toml")
    text += (
        "Made from the table of options. :doc:`/project-file` explains the file; "
        ":doc:`/options` has the same options as the command line and Python have "
        "them. A key for all verbs stands at the top or in ``[models.NAME]``; a key "
        "for one verb in ``[VERB]`` or ``[models.NAME.VERB]``.\n\n"
    )
    shared = {o.word for o in of_words(*COMMON, BoardOptions, PackageOptions, Trees)}
    shared |= {one.word for one in of_words(Images)}
    groups: dict[str, dict[str, tuple[Any, list[str]]]] = {}
    for verb, kinds in VERBS.items():
        for one in of_words(*kinds):
            known = groups.setdefault(one.group, {})
            known.setdefault(one.word, (one, []))[1].append(verb)
    for group, options in groups.items():
        text += title(f"{group[0].upper()}{group[1:]}", "-")
        rows = []
        for word, (one, verbs) in options.items():
            if word in ("name", "project", "force"):
                continue
            where = "all" if word in shared else ", ".join(verbs)
            rows.append((code(word), code(_value(one)), where, plain(one.help)))
        text += table(("key", "a value", "verbs", "says"), rows)
    return text


def _value(one: Any) -> str:
    known = one.kind.known()
    if not one.kind.metavar:
        return "true"
    if known and "|" in one.kind.metavar:
        return " | ".join(json.dumps(word) for word in known)
    example = one.kind.example
    return _toml(one.kind.metavar if example is None else example)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{name} = {_toml(one)}" for name, one in value.items())
        return f"{{ {inside} }}"
    return json.dumps(value)


def report_json() -> str:
    """Every object of the schema, with its keys."""
    whole = schema()
    known = whole["$defs"]
    text = title("report.json")
    text += (
        f"Schema {known['Report']['properties']['schema']['const']}. ``crt build`` "
        "writes this file beside the C; ``library.report.to_json()`` gives the same. "
        "Made from the dataclasses that write it. As a JSON Schema: "
        ":download:`report-schema.json </report-schema.json>`, whose ``Report`` is "
        "this file and whose rest is the data of a page (:doc:`/report`).\n\n"
    )
    for name in ("Report", *(one for one in known if one != "Report")):
        text += f".. _report-{name}:\n\n" + title(name, "-")
        head, found = fields(known[name]["description"])
        text += f"{inline(head)}\n\n" if head != name else ""
        about = {
            key: inline(said) for names, said in found for key in names.split(", ")
        }
        rows = [
            (
                code(key),
                _json_type(one),
                about.pop(key, _OLD if "deprecated" in one else ""),
            )
            for key, one in known[name]["properties"].items()
        ]
        text += table(("key", "type", "says"), rows)
        text += "".join(f"* {key}: {said}\n" for key, said in about.items()) + "\n"
    return text


_OLD = "the old name of another key"


def _json_type(one: Any) -> str:
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        return f":ref:`{name} <report-{name}>`"
    if "anyOf" in one:
        return " or ".join(map(_json_type, one["anyOf"]))
    if "prefixItems" in one:
        return "array: " + ", ".join(map(_json_type, one["prefixItems"]))
    if one.get("type") == "array":
        return f"array of {_json_type(one['items'])}"
    if "const" in one:
        return code(one["const"])
    return str(one["type"])


def error_codes() -> str:
    """Of C, of Python, of the command."""
    text = title("Error codes")
    text += title("C: enum crt_error", "-")
    text += (
        "Every ``int`` that crt returns is 0 or one of these; ``crt_strerror`` gives "
        "the text. In Python each is an exception of its name, a ``RuntimeError``.\n\n"
    )
    rows = [
        (code(number), code(kind.__name__), plain(kind.__doc__))
        for number, kind in sorted(errors().items(), reverse=True)
    ]
    text += table(("value", "name", "text"), rows)
    text += title("The command", "-")
    rows2 = [(code(number), plain(what)) for number, what in exit_codes().items()]
    text += table(("exit code", "means"), rows2)
    text += title("Python", "-")
    for name in ("BuildError", "LimitError", "BuildWarning"):
        text += f"* :py:class:`pybuild.{name}`: "
        said = str(getattr(pybuild, name).__doc__).split("\n\n")[0]
        # one line: from 3.13 on Python takes the indentation away
        text += plain(" ".join(said.split())) + "\n"
    return text


# ---- C ----------------------------------------------------------------------


def header_pages() -> Iterator[tuple[str, str]]:
    """A page for each header, and for a generated one."""
    names = [path.stem for path in sorted(HEADERS.glob("*.h"))]
    for name in names:
        yield name, _header(f"crt/{name}.h")
    head = title("A generated header: digits.h") + _GENERATED
    yield "generated", head + _file("digits.h")
    rows = [
        (f":doc:`crt/{name}.h <{name}>`", plain(_purpose(name).rstrip(".")))
        for name in names
    ]
    text = title("C API") + _C + table(("header", "is"), rows)
    yield "index", text


def _purpose(name: str) -> str:
    """The first sentence of a header."""
    said = (HEADERS / f"{name}.h").read_text().partition("*/")[0].partition(": ")[2]
    return re.sub(r"\s*\n \*\s*", " ", said).partition(". ")[0].strip()


_C = """\
Every function, type and macro of ``crt/include/crt``, made by Doxygen of the headers. A
network's own functions are in the header that a build writes. Fields of a comment:
*Thread* says who may call when, *Owner* whose memory it is, *Errors* what is returned.

"""
_GENERATED = """\
Functions of a network carry its name: this is the header of ``examples/digits``, built
with ``--name digits``. Other networks have the same functions under their own names,
and for their own inputs and outputs.

"""


def _header(file: str) -> str:
    return title(file) + _file(Path(file).name)


def _file(file: str) -> str:
    return f".. doxygenfile:: {file}\n   :project: crt\n\n"


# ---- Python -----------------------------------------------------------------

# what `import pybuild` gives is on the first page; modules have their own
_MODULES = ("features", "rpc", "runtime", "graph_executor", "debug_executor", "relay",
            "driver", "micro", "testing",
            "backend")  # fmt: skip
_GROUPS = {
    "From a file to C": ("load", "build", "quantise", "build_image", "fit", "check",
                         "write_evidence", "sweep"),
    "Graphs made by hand": ("GraphBuilder", "chain", "function", "functions"),
    "What these return": ("Model", "Quantised", "Library", "Image"),
    "Errors": ("BuildError", "LimitError", "BuildWarning"),
    "Names of TVM": ("TVMError", "load_module", "context", "cpu", "device", "ext_dev"),
}  # fmt: skip
# names of types in signatures, which stay names
TYPES = {
    "Source": "what ``pybuild.load`` takes: a path, bytes, a text, a model in memory",
    "Buildable": "a ``Model``, a graph made by hand, or a ``Source``",
    "Data": "samples: an array, arrays by name, or a file (:doc:`/python`)",
    "Array": "a numpy array",
    "ArrayLike": "a numpy array, or what becomes one",
    "AnyFunctions": "what ``functions`` gives, one function, or several; None",
    "AnyQuant": "(scale, zero point), or None",
    "Targets": "the name of a processor, or names by device",
    "Progress": "a function that is called with steps done, and all",
    "Arguments": "integers, or a function of output and input tensors",
    "Meaning": "a function of numpy arrays",
}
# of a class, what users call; all else serves other rooms
_MEMBERS = {
    "Library": "report, host, write_packages, to_html, sources, files, image, "
    "ram_curve, ram_bound, export_library, get_lib, get_graph_json, get_params",
    "Model": "build, problems, with_state, with_parameters, with_weights",
    "Image": "report, sources, files, host",
    "GraphBuilder": "input, constant, parameter, op, call, output, build",
    "Quantised": "build",
    "Net": "run, set_input, borrow_input, bind_input, push_rows, rows_wanted, "
    "get_output, outputs, borrow_output, bind_output, quantise, dequantise, reset, "
    "kept, save_state, restore_state, load_params, bind_parameter, share_params, "
    "another, close",
    "BuildError": "exit_code",
}


def python_pages() -> Iterator[tuple[str, str]]:
    """What `import pybuild` gives, and its modules."""
    text = title("Python API") + _PYTHON
    text += table(("in signatures", "is"), ((code(n), t) for n, t in TYPES.items()))
    text += ".. py:module:: pybuild\n\n"
    known = {name for names in _GROUPS.values() for name in names}
    rest = [name for name in pybuild.__all__ if name not in known and _is_own(name)]
    for caption, names in {**_GROUPS, **({"More": rest} if rest else {})}.items():
        text += title(caption, "-") + "".join(_python(name) for name in names)
    text += title("An instance on this machine", "-")
    text += "What ``library.host()`` returns.\n\n"
    text += _class("pybuild.host.native.Net", _MEMBERS["Net"])
    yield "index", text
    for name in _MODULES:
        yield name, title(f"pybuild.{name}") + _MODULE.format(name)


_MODULE = """\
.. automodule:: pybuild.{}
   :members:
   :imported-members:
   :inherited-members: Exception, BaseException, ndarray
   :undoc-members:
"""
_PLAIN = {
    "TVMError": "RuntimeError, of which all errors of crt and of boards are kinds.",
    "BuildWarning": " ".join(str(pybuild.BuildWarning.__doc__).split()),
}
_PYTHON = """\
Made of the docstrings. :doc:`/python` shows how it is used, :doc:`/options` has every
option with its values.

"""


def _is_own(name: str) -> bool:
    """Not a module, of which some have pages of their own."""
    return not isinstance(getattr(pybuild, name), ModuleType)


def _python(name: str) -> str:
    if name in _PLAIN:
        return f".. py:exception:: {name}\n\n   {plain(_PLAIN[name])}\n\n"
    if isinstance(getattr(pybuild, name), type):
        return _class(f"pybuild.{name}", _MEMBERS.get(name, ""))
    return f".. autofunction:: pybuild.{name}\n\n"


def _class(name: str, members: str) -> str:
    more = f"   :members: {members}\n\n" if members else "\n"
    return f".. autoclass:: {name}\n{more}"
