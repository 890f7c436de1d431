"""Files that say what stands before a net and after it: .toml, .json."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
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
from pybuild.front.chain import Front

OPTION = "--front"
# what a file's `kind` of features may be
KINDS: Mapping[str, Callable[..., Features | Images]] = {
    "images": images,
    "log_mel": log_mel,
    "mfcc": mfcc,
    "micro_frontend": micro_frontend,
    "motion": motion,
}
# FRONT.toml+NET
_JOINED = re.compile(r"(.+?\.(?:toml|json))\+(.+)", re.DOTALL)


def parted(path: str, front: str | None = None) -> tuple[str | None, str]:
    """Of FRONT.toml+NET both paths; of any other, or of a file of that name, `front`
    and itself.

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
    [decision], and, above them, `every` and `stream`.

    Errors  BuildError with everything that is wrong
    """
    where = Path(path).name
    is_json = Path(path).suffix == ".json"
    try:
        text = Path(path).read_text(encoding="utf-8")
        told = json.loads(text) if is_json else tomllib.loads(text)
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
        raise BuildError(f"{OPTION} {where}", why) from None
    except (ValueError, RecursionError) as error:
        kind = "JSON" if is_json else "TOML"
        raise BuildError(f"{OPTION} {where}", f"is no {kind}: {error}") from None
    if not isinstance(told, dict):
        raise BuildError(f"{OPTION} {where}", "is no table", "[features], [decision]")
    found = _unknown(where, told, ("features", "decision", "every", "stream"))
    parts = told.get("features", {}), told.get("decision", {})
    if not all(isinstance(part, dict) for part in parts):
        raise BuildError(where, "[features] and [decision] are tables")
    features = dict(parts[0])
    kind = features.pop("kind", "log_mel")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = fitting(str(kind), KINDS)
        raise BuildError(f"{where}: [features]", f"there is no kind '{kind}'", hint)
    known = [n for n in inspect.signature(KINDS[kind]).parameters if n != "name"]
    found += _unknown(f"{where}: [features]", features, known)
    names = [one.name for one in fields(Decision)]
    found += _unknown(f"{where}: [decision]", parts[1], names)
    every, stream = told.get("every", 0), told.get("stream", False)
    if not isinstance(every, int) or isinstance(every, bool) or every < 0:
        found.append(Problem(where, f"every is {every!r}, not rows"))
    if not isinstance(stream, bool):
        found.append(Problem(where, f"stream is {stream!r}, not true or false"))
    if found:
        raise BuildError.of(found)
    numbers: dict[str, Any] = {
        n: tuple(v) if isinstance(v, list) else v for n, v in parts[1].items()
    }
    try:
        made = KINDS[kind](**features, name=Path(path).stem)
        decision = Decision(**numbers) if "decision" in told else None
    except (TypeError, ValueError, OverflowError) as error:
        raise BuildError(f"{where}: [features]", str(error)) from None
    before = made if isinstance(made, Images) else made.graph
    return Front(before, decision, every, stream)


def _unknown(where: str, given: Mapping[str, Any], known: Any) -> list[Problem]:
    return [
        Problem(where, f"there is no '{name}'", fitting(name, known))
        for name in given
        if name not in known
    ]
