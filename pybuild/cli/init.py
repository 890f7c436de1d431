"""`crt init`: a project file with comments."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from pybuild.emit.tables.names import chosen_prefix
from pybuild.errors import BuildError, UsageError
from pybuild.files.names import stays_within
from pybuild.files.say import say
from pybuild.package.folder import write_file
from pybuild.project.read import OUTSIDE
from pybuild.project.write import project_text

Outcome = tuple[int, dict[str, Any]]


def init(args: argparse.Namespace) -> Outcome:
    """Writes the file, or nothing."""
    model, out = Path(args.model), Path(args.out)
    name = chosen_prefix(args.name, args.model)
    if not model.is_file():
        raise BuildError(args.model, "there is no such file")
    if out.exists() and not args.force:
        what = "is there already"
        raise UsageError(args.out, what, "another --out, or --force")
    near = Path(os.path.relpath(model, out.parent)).as_posix()
    write_file(out, project_text(name, near))
    if not args.json:
        inside = stays_within(out.parent, model)
        more = "" if inside else f" --{OUTSIDE}"
        say(f"wrote {args.out}; crt build {name}{more} builds it")
    return 0, {"wrote": args.out, "name": name}
