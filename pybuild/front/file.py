"""Files that say what stands before a net and after it: .toml, .json."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pybuild.errors import BuildError, Problem, fitting
from pybuild.features import (
    Decision,
    Features,
    Images,
    images,
    log_mel,
    mfcc,
    micro_frontend,
    motion,
)
from pybuild.files.parse import Unreadable, parse_json, parse_toml
from pybuild.files.read import WRITTEN, read_bytes
from pybuild.files.shape import shown
from pybuild.front.chain import Front
from pybuild.front.typed import misfits

OPTION = "--front"
# what a file's `kind` of features may be
KINDS: Mapping[str, Callable[..., Features | Images]] = {
    "images": images,
    "log_mel": log_mel,
    "mfcc": mfcc,
    "micro_frontend": micro_frontend,
    "motion": motion,
}
_MOST = 1 << 20  # rows of a run
# FRONT.toml+NET
_JOINED = re.compile(r"(.+?\.(?:toml|json))\+(.+)", re.DOTALL)


def parted(path: str, front: str | None = None) -> tuple[str | None, str]:
    """The two paths in FRONT.toml+NET; for any other path, or an existing file of that
    name, `front` and the path itself.

    Errors  BuildError where both say what stands before the net
    """
    found = _JOINED.fullmatch(path)
    if found is None or path.lstrip().startswith("{") or Path(path).exists():
        return front, path
    if front is not None:
        what = f"{front} and {found[1]} both say what stands before the model"
        raise BuildError(OPTION, what, "one of them")
    return found[1], found[2]


def read_front(path: str | Path) -> Front:
    """A .toml or .json file: [features] with `kind` and what that function takes,
    [decision], and, above them, `every` and `stream`. A kind alone, as micro_frontend,
    is that kind's features as they are by default.

    Errors  BuildError with everything that is wrong
    """
    where = Path(path).name
    is_kind = str(path) in KINDS and not Path(path).exists()
    told: dict[str, Any] = {"features": {"kind": str(path)}}
    if not is_kind:
        told = _told(Path(path))
    found = _unknown(where, told, ("features", "decision", "every", "stream"))
    parts = told.get("features", {}), told.get("decision", {})
    if not all(isinstance(part, dict) for part in parts):
        raise BuildError(where, "[features] and [decision] are tables")
    features = dict(parts[0])
    kind = features.pop("kind", "log_mel")
    if not isinstance(kind, str) or kind not in KINDS:
        what, hint = f"there is no kind {shown(kind)}", fitting(str(kind), KINDS)
        raise BuildError.of([*found, Problem(f"{where}: [features]", what, hint)])
    found += misfits(f"{where}: [features]", features, KINDS[kind], but=("name",))
    found += misfits(f"{where}: [decision]", parts[1], Decision)
    every, stream = told.get("every", 0), told.get("stream", False)
    if not isinstance(every, int) or isinstance(every, bool) or not 0 <= every < _MOST:
        found.append(Problem(where, f"every is {shown(every)}", "so many rows"))
    if not isinstance(stream, bool):
        found.append(Problem(where, f"stream is {shown(stream)}", "true or false"))
    if found:
        raise BuildError.of(found)
    numbers: dict[str, Any] = {
        n: tuple(v) if isinstance(v, list) else v for n, v in parts[1].items()
    }
    try:
        made = KINDS[kind](**features, name=Path(path).stem)
    except BuildError as error:  # of numbers that do not fit each other
        at = f"{where}: [features]"
        found = [Problem(at, one.what, one.hint) for one in error.problems]
        raise BuildError.of(found) from None
    decision = Decision(**numbers) if "decision" in told else None
    before = made if isinstance(made, Images) else made.graph
    return Front(before, decision, every, stream)


def _told(path: Path) -> dict[str, Any]:
    """Errors  BuildError for what is not a table of TOML or JSON"""
    where, is_json = f"{OPTION} {path.name}", path.suffix == ".json"
    try:
        data = read_bytes(path, WRITTEN)
        told = parse_json(data) if is_json else parse_toml(data.decode("utf-8"))
    except OSError as error:
        hint = "" if path.suffix else fitting(path.name, KINDS)
        raise BuildError(where, f"cannot be read ({error.strerror})", hint) from None
    except UnicodeDecodeError:
        raise BuildError(where, "is not text in UTF-8") from None
    except Unreadable as error:
        line = f":{error.line}" if error.line else ""
        raise BuildError(f"{where}{line}", error.what) from None
    if not isinstance(told, dict):
        raise BuildError(where, "is not a table", "[features], [decision]")
    return told


def _unknown(where: str, given: Mapping[str, Any], known: Any) -> list[Problem]:
    return [
        Problem(where, f"there is no {shown(name)}", fitting(name, known))
        for name in given
        if name not in known
    ]
