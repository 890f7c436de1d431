"""Files are written whole or not at all, and over nothing that is the user's.

A tree has a list of what its build has put there, in the form of sha256sum: the next
build of the same name knows by it what is its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pybuild.emit.content import Content, pieces
from pybuild.errors import BuildError, BuildWarning, Problem
from pybuild.files.names import is_inside
from pybuild.files.parse import parse_json
from pybuild.files.read import EXTERNAL, opened, read_bytes, read_text
from pybuild.files.read import REPORT as MOST_REPORT
from pybuild.files.shape import shown
from pybuild.files.write import leads_out, write_bytes

# of a tree, and of a package, where extras/ is what no build compiles
LIST, PACKAGE_LIST = "crt/files.sha256", "extras/files.sha256"
REPORT, PAGE = "report.json", "report.html"
EXAMPLE, EXAMPLE_NEW = "example/main.c", "example/main.c.new"
_ELSEWHERE = "another folder, or --force"
_DIGEST = re.compile("[0-9a-f]{64}")
_MOST_PROBLEMS = 20


def write_tree(
    folder: Path, files: Mapping[str, Content], name: str, force: bool = False
) -> None:
    """Writes all files; each appears whole or not at all.

    What an earlier build of this name has left there and this one has not is removed,
    for nobody to compile it; not if it was changed since. A BuildWarning names each
    file that was changed since and is replaced. An example that is no longer
    as a build left it is the user's, and stays; a BuildWarning says where ours is.

    name    of the build, which report.json says
    force   into a folder with other files, over those of the same names; of another
            build's, those that stay are told by a BuildWarning
    Errors  BuildError for a folder with other files than an earlier build's, for what
            cannot be written; then nothing of a new folder is visible
    """
    found = refusals(folder, files, name, force)
    if found:
        raise BuildError.of(found)
    there = _own_before(folder, name)
    if not folder.exists():
        _write_new(folder, files)
        return
    other, stay = _of_another(folder, files, name)
    chosen = _beside_the_users(folder, files)
    edited = _edited(folder, chosen, there)
    _write_all(folder, chosen, folder)
    for path in sorted(there.keys() - files.keys()):
        _remove(folder / path, there[path])
    for path in edited:
        what = f"{folder / path}: was changed since an earlier build wrote it; this "
        what += "build has replaced it"
        warnings.warn(what, BuildWarning, stacklevel=3)
    if stay:
        some = ", ".join(stay[:3]) + (", ..." if len(stay) > 3 else "")
        what = f"{folder}: files of build '{other}' stay there: {some}"
        warnings.warn(what, BuildWarning, stacklevel=3)
    if EXAMPLE_NEW in chosen:
        what = f"{folder / EXAMPLE} is yours and was kept; this build's is "
        what += f"{Path(EXAMPLE_NEW).name} beside it"
        warnings.warn(what, BuildWarning, stacklevel=3)


def refusals(
    folder: Path, files: Mapping[str, Content], name: str, force: bool = False
) -> list[Problem]:
    """Why write_tree would not write them, [] if it would."""
    found = _no_folder(folder) or [
        Problem(str(folder / path), "is behind a link that leads out", "another folder")
        for path in sorted({*files, LIST, PACKAGE_LIST})
        if leads_out(folder, path)
    ]
    if not found and not force:
        found = _in_the_way(folder, files, name, _own_before(folder, name))
    return found


def _own_before(folder: Path, name: str) -> dict[str, str]:
    """The files of an earlier build of this name, with their digests."""
    return _listed(folder) if _built_before(folder) == name else {}


def _edited(
    folder: Path, files: Mapping[str, Content], there: Mapping[str, str]
) -> list[str]:
    """The files of an earlier build that hold neither what it nor what this one wrote.

    there  their digests when they were written
    """
    found = []
    for path in sorted(files.keys() & there.keys()):
        now = digest_at(folder / path)
        if now not in ("", there[path]) and now != digest_of(files[path]):
            found.append(path)
    return found


def _of_another(
    folder: Path, files: Mapping[str, Content], name: str
) -> tuple[object, list[str]]:
    """The name of a build that was there before this one, and its files that stay."""
    other = _built_before(folder)
    listed = _listed(folder) if other not in (None, name) else {}
    stay = listed.keys() - files.keys()
    return other, [path for path in sorted(stay) if (folder / path).is_file()]


def write_beside(folder: Path, files: Mapping[str, Content]) -> None:
    """Writes files to a folder that may have others.

    Errors  BuildError with every file that is there and holds something else
    """
    made = {name: b"".join(pieces(content)) for name, content in files.items()}
    found = _no_folder(folder)
    for name, data in sorted(made.items()):
        if (folder / name).exists() and digest_at(folder / name) != digest_of(data):
            what = "holds something else"
            found.append(Problem(str(folder / name), what, "another folder"))
    if found:
        raise BuildError.of(found)
    for name, data in sorted(made.items()):
        write_file(folder / name, data)


def write_file(path: Path, content: Content, said: Path | None = None) -> str:
    """Writes a file, whole or not at all, over one that is there; its SHA-256.

    said    its name in messages, if that is another
    Errors  BuildError; nothing is left of it then
    """
    found = _no_folder(path.parent)
    if found:
        raise BuildError.of(found)
    with telling(said or path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_bytes(path, pieces(content))


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Turns OSErrors into BuildErrors.

    Errors  BuildError for every OSError: the file, and why
    """
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BuildError(str(path), f"cannot be written: {reason}") from None


def _write_new(folder: Path, files: Mapping[str, Content]) -> None:
    """All of it, or nothing."""
    with telling(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".crt-") as place:
            fresh = Path(place) / folder.name
            _write_all(fresh, files, folder)
            os.rename(fresh, folder)


def _write_all(place: Path, files: Mapping[str, Content], said: Path) -> None:
    """The files, then the list of them."""
    digests = {
        name: write_file(place / name, content, said / name)
        for name, content in sorted(files.items())
    }
    digests.pop(EXAMPLE_NEW, None)  # for the user to take or remove
    lines = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    is_package = any(name.startswith(("src/", "components/")) for name in files)
    listed = PACKAGE_LIST if is_package else LIST
    write_file(place / listed, lines, said / listed)


def _remove(path: Path, digest: str) -> None:
    """Removes a file of an earlier build, unless it was changed since."""
    if not path.is_file():
        return
    if digest_at(path) == digest:
        with telling(path):
            path.unlink()
        return
    what = f"{path}: was written by an earlier build and changed since; it stays"
    warnings.warn(what, BuildWarning, stacklevel=2)


def _in_the_way(
    folder: Path, files: Mapping[str, Content], name: str, there: Mapping[str, str]
) -> list[Problem]:
    """Why a tree must not be written: files of the user's are there.

    there  what an earlier build says that it wrote; {}: it says nothing
    """
    if not folder.exists() or not any(folder.iterdir()):
        return []
    if _built_before(folder) != name:
        what = f"contains files that are not from a build of '{name}'"
        return [Problem(str(folder), what, _ELSEWHERE)]
    others = (p for p in files if there and p not in there and p != EXAMPLE)
    what = f"exists and is not from a build of '{name}'"
    return [
        Problem(str(folder / path), what, _ELSEWHERE)
        for path in sorted(others)
        if (folder / path).exists()
    ]


def _no_folder(place: Path) -> list[Problem]:
    nearest = next(p for p in (place, *place.absolute().parents) if p.exists())
    if nearest.is_dir():
        return []
    return [Problem(str(nearest), "is a file", "give a folder")]


def _built_before(folder: Path) -> object:
    """The name in the folder's report.json, None if there is no such thing."""
    try:
        name = parse_json(read_bytes(folder / REPORT, MOST_REPORT))["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) else None


def _listed(folder: Path) -> dict[str, str]:
    """Path -> SHA-256 of what a build says that it has written; those within."""
    for name in (LIST, PACKAGE_LIST):
        if (folder / name).exists():
            found = listed_in(folder / name)
            return {p: d for p, d in found.items() if not leads_out(folder, p)}
    return {}


def listed_in(path: Path) -> dict[str, str]:
    """Path -> SHA-256 of a list in the form of sha256sum; {} if it is none."""
    return {} if list_problems(path) else dict(_entries(_lines(path)))


def list_problems(path: Path) -> list[Problem]:
    """The problems of a list that strangers may have written: each line in another
    form."""
    try:
        lines = _lines(path)
    except OSError as error:
        return [Problem(str(path), f"cannot be read ({error.strerror})")]
    except ValueError:
        return [Problem(str(path), "is not text in UTF-8")]
    found, form = list[Problem](), "SHA-256, two spaces, a path within the folder"
    for number, line in enumerate(lines, 1):
        digest, _, name = line.partition("  ")
        if not _DIGEST.fullmatch(digest) or not is_inside(name):
            what = f"{shown(line)} is not a line of such a list"
            found.append(Problem(f"{path}:{number}", what, form))
    return found[:_MOST_PROBLEMS]


def _lines(path: Path) -> list[str]:
    return [line for line in read_text(path).split("\n") if line]


def _entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        digest, _, name = line.partition("  ")
        yield name, digest


def list_of(folder: Path) -> dict[str, str]:
    """The folder's list of the files that a build has written.

    Errors  BuildError with each line of the list that is none
    """
    found = [p for n in (LIST, PACKAGE_LIST) if (folder / n).exists()
             for p in list_problems(folder / n)]  # fmt: skip
    if found:
        raise BuildError.of(found)
    return _listed(folder)


def _beside_the_users(
    folder: Path, files: Mapping[str, Content]
) -> Mapping[str, Content]:
    """The files to write: a changed example of ours goes beside one of the user's,
    once for each change."""
    path = folder / EXAMPLE
    if EXAMPLE not in files or not path.exists():
        return files
    ours, before = digest_of(files[EXAMPLE]), _example_before(folder)
    if digest_at(path) in (ours, before):
        (folder / EXAMPLE_NEW).unlink(missing_ok=True)
        return files
    chosen = {name: content for name, content in files.items() if name != EXAMPLE}
    return chosen if ours == before else {**chosen, EXAMPLE_NEW: files[EXAMPLE]}


def _example_before(folder: Path) -> object:
    """The digest of the example that the last build made, None if nothing says it."""
    try:
        facts = parse_json(read_bytes(folder / REPORT, MOST_REPORT))
        return facts["example"]["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def digest_at(path: Path) -> str:
    """The hash of a file's bytes; "" if there is none, or if it is a folder, a pipe or
    a device."""
    try:
        with opened(path, EXTERNAL) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def digest_of(content: Content) -> str:
    """Its SHA-256."""
    whole = hashlib.sha256()
    for piece in pieces(content):
        whole.update(piece)
    return whole.hexdigest()
