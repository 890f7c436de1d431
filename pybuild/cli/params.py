"""`crt params`: packs, lists, verifies and converts parameter files.

Parameters are named arrays; only `pack --model` knows how a model's kernels read them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybuild.cli.options import add_options, chosen, values
from pybuild.errors import BuildError, UsageError
from pybuild.files.read import read_bytes
from pybuild.files.say import say
from pybuild.options.option import of_words
from pybuild.options.table import BuildOptions, LoadOptions

if TYPE_CHECKING:
    from pybuild.params.image import Entry

Outcome = tuple[int, dict[str, Any]]
COMPRESSIONS = ("none", "lz4")
# with --model, as in its build
_BUILD = ("input-dim", "input-value", "bound", "max-turns", "hybrid", "rounding",
          "target", "optimise", "names", "layout", "params")  # fmt: skip
_OPTIONS = [x for x in of_words(LoadOptions, BuildOptions) if x.word in _BUILD]
_FILES = "a .params (TVM's blob), .crtp (image) or .npz file"


def add_parsers(verb: argparse.ArgumentParser) -> None:
    """The actions below `crt params`; the chosen one is in `action`."""
    actions = verb.add_subparsers(dest="action", required=True, metavar="ACTION")
    pack = _action(actions, "pack", "arrays into an image that is used in place")
    listed = _action(actions, "list", "what a file holds, and what packing saves")
    verify = _action(actions, "verify", "check everything; exit 2 if damaged")
    convert = _action(actions, "convert", "between blob, image and .npz by suffix")
    for action in (pack, listed, verify, convert):
        action.add_argument("file", metavar="FILE", help=_FILES)
        action.add_argument("--json", action="store_true", help="one JSON object")
    add = pack.add_argument
    text = "arrange them as the kernels of this model read them; others as it has them"
    add("--model", metavar="MODEL", help=text)
    add_options(pack, _OPTIONS)
    for action in (pack, convert):
        add = action.add_argument
        add("-o", "--out", required=True, metavar="FILE", help="what to write")
        add("--compress", choices=COMPRESSIONS, default="none", help="in an image")
        add("--align", type=int, default=16, metavar="N", help="bytes, in an image")


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = actions.add_parser(
        name, help=text, description=text
    )
    return made


def params(args: argparse.Namespace) -> Outcome:
    """Does one action on one parameter file.

    Errors  BuildError for damaged files, and what a format cannot hold
    """
    return 0, ACTIONS[args.action](args, read_bytes(args.file))


def _pack(args: argparse.Namespace, data: bytes) -> dict[str, Any]:
    if Path(args.out).suffix.lower() != ".crtp":
        hint = "crt params convert writes the other kinds"
        raise UsageError(args.out, "is not a name of an image (.crtp)", hint)
    if args.model:
        return _written(args, _arranged(args, data))
    return _convert(args, data)


def _arranged(args: argparse.Namespace, data: bytes) -> bytes:
    """The image of a model with these values of its parameters."""
    from pybuild.entry import load
    from pybuild.params.codecs import codec_called
    from pybuild.params.files import read_arrays

    arrays = read_arrays(data, Path(args.file).name)
    made = values(args, _OPTIONS)
    model = load(args.model, **chosen(LoadOptions, made))
    library = model.build(**{"params": "replaceable", **chosen(BuildOptions, made)})
    known = library.model.graph.parameters
    new = {name: value for name, value in arrays.items() if name in known}
    if not new:
        hint = f"it has {', '.join(sorted(known)) or 'none'}"
        what = f"has no parameter of {Path(args.model).name}"
        raise BuildError(Path(args.file).name, what, hint)
    return library.image(new, codec_called(args.compress))


def _convert(args: argparse.Namespace, data: bytes) -> dict[str, Any]:
    from pybuild.params.codecs import codec_called
    from pybuild.params.files import read_arrays, write_arrays

    arrays = read_arrays(data, Path(args.file).name)
    codec = codec_called(args.compress)
    return _written(args, write_arrays(arrays, args.out, codec, args.align))


def _written(args: argparse.Namespace, made: bytes) -> dict[str, Any]:
    """Writes the file, whole or not at all, and shows what it holds."""
    from pybuild.package.folder import write_file

    write_file(Path(args.out), made)
    facts = _facts(Path(args.out).name, made)
    if not args.json:
        _show(facts)
        say(f"wrote {args.out}")
    return facts


def _list(args: argparse.Namespace, data: bytes) -> dict[str, Any]:
    facts = _facts(Path(args.file).name, data)
    if not args.json:
        _show(facts)
    return facts


def _verify(args: argparse.Namespace, data: bytes) -> dict[str, Any]:
    from pybuild.params.files import kind_of, read_arrays
    from pybuild.params.image_read import read_image

    name = Path(args.file).name
    kind = kind_of(data, name)
    if kind == "image":
        image = read_image(data, name)
        image.parameters()
        count = len(image.entries)
    else:
        count = len(read_arrays(data, name))
    if not args.json:
        say(f"{name}: {count} parameters, nothing wrong ({kind})")
    return {"file": name, "kind": kind, "count": count}


ACTIONS: dict[str, Callable[[argparse.Namespace, bytes], dict[str, Any]]] = {
    "pack": _pack,
    "list": _list,
    "verify": _verify,
    "convert": _convert,
}


def _facts(name: str, data: bytes) -> dict[str, Any]:
    """A file as --json shows it."""
    from pybuild.params.files import kind_of, read_arrays
    from pybuild.params.image_read import read_image

    kind = kind_of(data, name)
    facts: dict[str, Any] = {"file": name, "kind": kind, "bytes": len(data)}
    if kind == "image":
        image = read_image(data, name)
        facts |= {"align": image.align, "plan": f"{image.plan:016x}"}
        facts |= {"content": f"{image.content:016x}"}
        return facts | {"parameters": [_entry_facts(e) for e in image.entries]}
    arrays = read_arrays(data, name)
    return facts | {
        "parameters": [
            {
                "name": n,
                "dtype": a.dtype.name,
                "shape": list(a.shape),
                "bytes": a.nbytes,
            }
            for n, a in arrays.items()
        ]
    }


def _entry_facts(entry: Entry) -> dict[str, Any]:
    from pybuild.params.codecs import codec_name

    return {
        "name": entry.name,
        "dtype": entry.dtype.value,
        "shape": list(entry.shape),
        "bytes": entry.bytes,
        "stored": entry.stored,
        "codec": codec_name(entry.codec),
        "layout": entry.layout,
        "at": entry.at,
    }


def _show(facts: dict[str, Any]) -> None:
    from pybuild.cli.output.tables import table

    columns = [("parameter", "name"), ("type", "left"), ("bytes", "right")]
    packed = facts["kind"] == "image"
    if packed:
        columns += [("stored", "right"), ("saved", "right")]
    rows = []
    for p in facts["parameters"]:
        dims = ",".join(map(str, p["shape"]))
        row = [p["name"], f"{p['dtype']}[{dims}]", f"{p['bytes']:,}"]
        if packed:
            codec = "" if p["codec"] == "none" else f" {p['codec']}"
            row += [f"{p['stored']:,}{codec}", _saved(p["bytes"], p["stored"])]
        rows.append(row)
    table(f"{facts['file']}: {facts['kind']}", columns, rows)
    total = sum(p["bytes"] for p in facts["parameters"])
    text = f"{len(rows)} parameters, {total:,} bytes"
    if packed:
        stored = sum(p["stored"] for p in facts["parameters"])
        text += f", {stored:,} stored ({_saved(total, stored)} saved)"
        text += f", aligned to {facts['align']}"
    say(f"{text}; file {facts['bytes']:,}")


def _saved(size: int, stored: int) -> str:
    return f"{100 * (size - stored) / size:.1f} %" if size else "-"
