"""Text files that say something else than they should, key by key: every value becomes
one of every type, keys go and are renamed. What reads them may refuse that, in a line
for each fault, and nothing else.

python -m tests.attacks.damaged [SEED]: all of them; which reader raised what.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import functools
import io
import json
import math
import random
import re
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybuild.errors import BuildError
from tests.attacks.documents import (
    BOARD,
    CHIP,
    DIGITS,
    ENTRY,
    FIGURES,
    fronts,
    project,
    recipe,
    report,
    small_project,
    small_tree,
)

COMMON: tuple[Any, ...] = (
    True, 0, -1, 5, 2**31, 2**63 - 1, -(2**63), 0.5, -1e308, "", "x", "../../x",
    "/dev/zero", "\x1b[2J\x07", "a\u202eb\x9b", "x\ny: z", "\0", "a" * 3000, "9" * 5000,
    "auto", "1", [], ["cortex-m4"], [[]], [1, [2]], [{}], {}, {"a": 1},
    {"a": {"b": [1]}}, {"": ""},
)  # fmt: skip
OF_TOML = (math.nan, math.inf, datetime.date(1979, 5, 27), datetime.time(7, 32))
OF_JSON = (None, math.nan, math.inf, "\ud800")
# words of Python, not of ours
_PYTHON = re.compile(
    r"object is not|has no attribute|NoneType|positional argument|keyword argument|"
    r"unhashable|invalid literal|could not convert|Exceeds the limit|embedded null|"
    r"list index|not supported between|unsupported operand|must be str|<class"
)
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The path of every key and index, from the top."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield (key,)
        if isinstance(value[key], dict | list):
            yield from ((key, *rest) for rest in places(value[key]))


def faults(document: Any, values: Sequence[Any]) -> list[tuple[tuple[Any, ...], Any]]:
    """Where, and what is there instead."""
    changes = (*values, "DROP", "RENAME")
    return [(path, change) for path in places(document) for change in changes]


def with_fault(document: Any, path: tuple[Any, ...], change: Any) -> Any:
    """A copy."""
    made = copy.deepcopy(document)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    last = path[-1]
    if change == "DROP":
        del holder[last]
    elif change == "RENAME":
        if isinstance(holder, dict):
            holder[f"{last}x"] = holder.pop(last)
    else:
        holder[last] = copy.deepcopy(change)
    return made


def as_json(document: Any) -> bytes:
    return json.dumps(document).encode()


def as_toml(document: dict[str, Any]) -> bytes:
    """Each table inline; None is left out."""
    lines = [f"{_word(k)} = {_toml(v)}\n" for k, v in document.items()]
    return "".join(lines).encode()


def _word(text: str) -> str:
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(c: str) -> str:
    return f"\\U{ord(c):08x}" if ord(c) < 32 or c in '"\\\x7f' else c


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _word(value)
        case dict():
            items = (f"{_word(k)} = {_toml(v)}" for k, v in value.items())
            return "{" + ", ".join(items) + "}"
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case float() if math.isnan(value) or math.isinf(value):
            return "nan" if math.isnan(value) else "inf"
    return str(value)


# ---- readers -------------------------------------------------------------------


Input = Callable[[], bytes]


@dataclass(frozen=True)
class Kind:
    """inputs: all that there are, each made when it is wanted; read: may raise
    BuildError
    """

    inputs: Callable[[], list[Input]]
    read: Callable[[Path, bytes], object]


def _read_front(folder: Path, data: bytes) -> object:
    from pybuild.front.file import read_front

    path = folder / ("front.json" if data.startswith(b"{") else "front.toml")
    path.write_bytes(data)
    return read_front(path)


def _read_project(folder: Path, data: bytes) -> object:
    from pybuild.options.table import VERBS
    from pybuild.project.read import read_project

    (folder / "crt.toml").write_bytes(data)
    project = read_project(folder / "crt.toml")
    entries = (*project.models.values(), *project.images.values())
    return [project.values(one, verb) for one in entries for verb in VERBS]


def _run_project(folder: Path, data: bytes) -> object:
    """`crt build` with a small model, as a command."""
    shutil.copy(DIGITS, folder / "a.tflite")
    (folder / "crt.toml").write_bytes(data)
    return _command("inspect", "a", "--project", str(folder / "crt.toml"))


def _command(*words: str) -> None:
    """Errors  BuildError in the words of stderr, for a code that says so"""
    from pybuild.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    assert code in (0, 1, 2, 3, 64), code
    said = out.getvalue() + err.getvalue()
    assert not _UNSEEN.search(said) and "Traceback" not in said, said
    if code in (2, 3, 64):
        raise BuildError("", err.getvalue().replace("\n", " "))


def _rebuild(folder: Path, data: bytes) -> object:
    from pybuild.rebuild import made_again

    tree = folder / "tree"
    if not tree.exists():
        tree.mkdir()
        shutil.copy(DIGITS, folder)
    (tree / "report.json").write_bytes(data)
    return made_again(tree, [DIGITS])


def _compare(folder: Path, data: bytes) -> object:
    from pybuild.cli.report import report_of_folder
    from pybuild.html.comparison import compared, comparison_page
    from pybuild.html.data import of_report
    from pybuild.html.page import quoted

    (folder / "report.json").write_bytes(data)
    one = report_of_folder(folder)
    comparison_page(compared(one, report()))
    comparison_page(compared(report(), one))
    return quoted(of_report(one))


def _lists() -> list[Input]:
    lines = (small_tree() / "crt" / "files.sha256").read_text().splitlines()[:3]
    digest = "0" * 64
    bad = ["x", digest, f"{digest}  ", f"{digest} a", f"{digest}  ../../x", "\0",
           f"{digest}  /etc/passwd", f"{digest}  a/../../b", f"{digest}  \x1b[2J",
           f"{'g' * 64}  a", f"{digest}  C:x", f"{digest}  a\\b", "a" * 5000,
           f"{digest}  {'a/' * 3000}b"]  # fmt: skip
    made = ["\n".join([*lines[:at], one, *lines[at:]]) for at in (0, 3) for one in bad]
    all_ = [*(text.encode() for text in made), b"\xff\xfe", b"", b"\n" * 1000]
    return [functools.partial(bytes, one) for one in all_]


def _read_list(folder: Path, data: bytes) -> object:
    (folder / "crt").mkdir(exist_ok=True)
    (folder / "report.json").write_text(json.dumps(report()))
    shutil.copy(DIGITS, folder.parent)
    (folder / "crt" / "files.sha256").write_bytes(data)
    from pybuild.rebuild import made_again

    return made_again(folder, [DIGITS])


def _read_entry(folder: Path, data: bytes) -> object:
    """What a sweep finds of an earlier one, and does with it."""
    from pybuild.html.page import SWEEP, page
    from pybuild.sweeps.front import front
    from pybuild.sweeps.store import Store

    store = Store(folder)
    (store.builds / "k.json").write_bytes(data)
    found = store.entry("k")
    if found is None:
        return None
    row = {"key": "k", "model": "m", "options": {}, **FIGURES, **found["figures"],
           "problems": found["problems"], "report": found["report"]}  # fmt: skip
    front([row, row], ("ram", "flash", "instructions"))
    front([row, row], ("cycles", "accuracy", "error"))
    report = found["report"]
    assert report is None or re.fullmatch(r"builds/\w+\.html", report)
    return page("x", {"rows": [row]}, SWEEP)


def load_board(folder: Path, board: bytes, chip: bytes) -> object:
    from pybuild.targets.board import load_board

    (folder / "b").mkdir(exist_ok=True, parents=True)
    (folder / "soc").mkdir(exist_ok=True)
    (folder / "b" / "board.c").write_text("")
    (folder / "b" / "board.toml").write_bytes(board)
    (folder / "soc" / "chip.toml").write_bytes(chip)
    return load_board(str(folder / "b"))


def _of_toml(*documents: dict[str, Any]) -> list[Input]:
    return _each(documents, (*COMMON, *OF_TOML), as_toml)


def _of_json(*documents: dict[str, Any]) -> list[Input]:
    return _each(documents, (*COMMON, *OF_JSON), as_json)


def _each(
    documents: Sequence[Any], values: Sequence[Any], write: Callable[[Any], bytes]
) -> list[Input]:
    def made(one: Any, path: tuple[Any, ...], change: Any) -> bytes:
        return write(with_fault(one, path, change))

    return [
        functools.partial(made, one, path, change)
        for one in documents
        for path, change in faults(one, values)
    ]


KINDS = {
    "front": Kind(lambda: _of_toml(*fronts()) + _of_json(fronts()[0]), _read_front),
    "crt.toml": Kind(lambda: _of_toml(project()), _read_project),
    "crt inspect": Kind(lambda: _of_toml(small_project()), _run_project),
    "rebuild": Kind(lambda: _of_json(recipe()), _rebuild),
    "report.json": Kind(lambda: _of_json(report()), _compare),
    "files.sha256": Kind(_lists, _read_list),
    "sweep": Kind(lambda: _of_json(ENTRY), _read_entry),
    "board.toml": Kind(
        lambda: _of_toml(BOARD), lambda f, d: load_board(f, d, as_toml(CHIP))
    ),
    "soc.toml": Kind(
        lambda: _of_toml(CHIP), lambda f, d: load_board(f, as_toml(BOARD), d)
    ),
}


def problem_with(kind: Kind, folder: Path, data: bytes) -> str | None:
    """What a reader did that it may not do; "": it took the input; None: it refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind.read(folder, data)
    except BuildError as error:
        for problem in error.problems:
            text = str(problem)
            if "\n" in text or _UNSEEN.search(text):
                return f"not one line: {text[:200]!r}"
            if _PYTHON.search(text):
                return f"Python's words: {text[:200]}"
        return None
    except OSError as error:  # which the command tells in a line
        return None if error.strerror else f"OSError {error}"
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = Path(trace.tb_frame.f_code.co_filename).name if trace else ""
        return f"{type(error).__name__} in {where}: {str(error)[:120]}"
    return ""


def tried(kind: Kind, inputs: Sequence[Input]) -> Counter[str]:
    """How many were accepted and refused; what else came of others, with the input."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="damaged-") as place:
        folder = Path(place) / "in"
        folder.mkdir()
        for make in inputs:
            data = make()
            found = problem_with(kind, folder, data)
            word = {None: "refused", "": "accepted"}.get(found, found)
            if found and not counts[found]:
                at = max(len(data) - 300, 0) if len(data) > 4000 else 0
                print(f"    {found}\n      {data[at : at + 300]!r}", flush=True)
            counts[str(word)] += 1
    return counts


def some(inputs: Sequence[Input], most: int, seed: int = 0) -> list[Input]:
    return random.Random(seed).sample(list(inputs), min(most, len(inputs)))


def main(words: Sequence[str]) -> int:
    names = [n for n in KINDS if not words or n in words]
    most = int(words[-1]) if words and words[-1].isdecimal() else 10**6
    wrong = 0
    for name in names or KINDS:
        counts = tried(KINDS[name], some(KINDS[name].inputs(), most))
        bad = sum(counts.values()) - counts["refused"] - counts["accepted"]
        wrong += bad
        said = f"{counts['accepted']} accepted, {counts['refused']} refused"
        print(f"{name:14}{sum(counts.values()):6} tried, {said}, {bad} wrong")
        sys.stdout.flush()
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
