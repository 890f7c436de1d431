"""`crt rebuild`: makes a tree again from itself, and says what differs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pybuild import __version__
from pybuild.cli.output.progress import working
from pybuild.files.say import say

Outcome = tuple[int, dict[str, Any]]
OK, MISMATCH = 0, 1


def add_parser(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", metavar="DIR", help="what crt build has written")
    text = "a model or samples: not here, beside the tree, or where crt.toml says"
    add("--from", dest="files", action="append", default=[], metavar="FILE", help=text)
    text = "only say what differs, and write nothing"
    add("--check", action="store_true", help=text)
    add("--json", action="store_true", help="one JSON object on stdout")


def rebuild(args: argparse.Namespace) -> Outcome:
    """Exit 1 where bytes differ; then the tree is written, unless --check."""
    from pybuild.package.folder import write_tree
    from pybuild.rebuild import made_again

    folder = Path(args.folder)
    with working(f"building {folder.name}"):
        found = made_again(folder, [Path(file) for file in args.files])
    writes = bool(found.changed) and not args.check
    if writes:
        write_tree(folder, found.files, found.made.name, force=True)
    if not args.json:
        for name in found.changed:
            note = " (changed by hand)" if name in found.by_hand else ""
            word = "missing" if name in found.missing else "differs"
            say(f"{word}  {name}{note}")
        if found.before != __version__:
            say(f"it was made by pybuild {found.before}, this is {__version__}")
        say("equal" if not found.changed else "NOT equal", end="")
        say(f"; wrote {folder}" if writes else "")
    facts = {**found.to_json(), "wrote": writes}
    return MISMATCH if found.changed else OK, facts
