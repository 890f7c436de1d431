"""The house of docs/design.md: floors, sizes, names, what no file may hold."""

from __future__ import annotations

import ast
import functools
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import pybuild

ROOT = Path(__file__).resolve().parent.parent.parent

DESIGN = (ROOT / "docs" / "design.md").read_text()


def _rows(head: str) -> Iterator[list[str]]:
    """The cells of the table of docs/design.md that begins like this."""
    for line in DESIGN[DESIGN.index(head) :].splitlines()[2:]:
        if not line:
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def _named(cell: str) -> list[str]:
    return re.findall(r"`([a-z0-9_/]+?)(?:/|\.py)?`", cell)


def _floors() -> dict[str, int]:
    """The floor of each room of pybuild is the number of its row."""
    rows = _rows("| pybuild/ | what |")
    return {name: n for n, row in enumerate(rows) for name in _named(row[0])}


def _c_floors() -> dict[str, int]:
    rows = _rows("| crt/include/crt/, crt/src/ | floor |")
    return {name: int(row[1]) for row in rows for name in _named(row[0])}


FLOORS = _floors()
C_FLOORS = _c_floors()
OUTSIDE = {"_build"}  # runs before pybuild's needs are there: the lowest floor only

FOLDERS = ("pybuild", "crt", "boards", "tests", "examples", "docs", ".ci")
TOP_FILES = ("dev", "meson.build", "pyproject.toml", "README.md")
C_SUFFIXES = {".c", ".h", ".cpp"}
GENERATED = {"golden"}  # printed by pybuild, committed to be reviewed


def _files(*suffixes: str) -> list[Path]:
    """The project's own text files with these suffixes (all without any)."""
    found = [ROOT / name for name in TOP_FILES]
    for folder in FOLDERS:
        found += sorted((ROOT / folder).rglob("*"))
    skip = {"__pycache__", "_data", ".hypothesis"} | GENERATED
    return [
        path
        for path in found
        if path.is_file()
        and not skip & set(path.relative_to(ROOT).parts)
        and (not suffixes or path.suffix in suffixes)
    ]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _python() -> list[Path]:
    return _files(".py")


def _package() -> list[Path]:
    return [path for path in _python() if path.is_relative_to(ROOT / "pybuild")]


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


# ---- floors ---------------------------------------------------------------


def _room(module: str) -> str:
    """The longest that has a floor: pybuild.kernels.dsp.conv -> kernels/dsp,
    pybuild.ops.conv -> ops, pybuild -> __init__"""
    parts = module.split(".")[1:]
    for count in range(len(parts), 0, -1):
        if "/".join(parts[:count]) in FLOORS:
            return "/".join(parts[:count])
    return parts[0] if parts else "__init__"


def _imports(path: Path) -> Iterator[str]:
    module = _name(path).removesuffix(".py").replace("/", ".")
    package = module.removesuffix(".__init__")
    if module == package:
        package = module.rpartition(".")[0]
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                above = parts[: len(parts) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            if (ROOT / base.replace(".", "/")).is_dir() and base:
                yield from (f"{base}.{alias.name}" for alias in node.names)
            else:
                yield base


def _upward(source: Path) -> list[str]:
    own = _room(_name(source).removesuffix(".py").replace("/", "."))
    outside = FLOORS["install"] + 1
    own_floor = outside if own in OUTSIDE else FLOORS.get(own, FLOORS["entry"])
    wrong = []
    for module in _imports(source):
        if module.split(".")[0] != "pybuild" or module == "pybuild.__version__":
            continue
        room = _room(module)
        floor = FLOORS.get(room, FLOORS["model"])  # pybuild's own names, lazily
        lazy = own == "__init__"  # which names what is imported when it is used
        beside = (ROOT / "pybuild" / f"{own}.py").is_file() and (
            ROOT / "pybuild" / f"{room}.py"
        ).is_file()
        level = floor == own_floor and beside
        if not (floor < own_floor or room == own or level or lazy):
            wrong.append(f"{_name(source)} (floor {own_floor}) imports {module}")
    return wrong


def test_every_room_has_a_floor() -> None:
    files = [path for path in _package() if path.name != "__init__.py"]
    rooms = {_room(_name(p).removesuffix(".py").replace("/", ".")) for p in files}
    assert rooms - set(FLOORS) == set()


def test_every_name_of_the_table_is_there() -> None:
    """A folder, or a file that is listed by itself."""
    there = {
        path.relative_to(ROOT / "pybuild").with_suffix("").as_posix()
        for path in (ROOT / "pybuild").rglob("*")
    }
    assert set(FLOORS) - there == set()


MOST_FILES = 22  # of a room's own: more are two rooms


def test_rooms_are_no_halls() -> None:
    counts = Counter(_name(p.parent) for p in _python() if p.name != "__init__.py")
    assert {room: n for room, n in counts.items() if n > MOST_FILES} == {}


def test_no_import_goes_up() -> None:
    wrong = [line for path in _package() for line in _upward(path)]
    assert not wrong, "\n" + "\n".join(wrong)


def _circles(arrows: dict[str, set[str]]) -> set[frozenset[str]]:
    """Nodes that reach each other."""
    reached: dict[str, set[str]] = {}
    for start in arrows:
        found, waiting = set[str](), [start]
        while waiting:
            waiting += (new := arrows[waiting.pop()] - found)
            found |= new
        reached[start] = found
    groups = {
        frozenset({a, *(b for b in reached[a] if a in reached[b])}) for a in arrows
    }
    return {group for group in groups if len(group) > 1}


def test_no_files_import_each_other_in_a_circle() -> None:
    """But for the package's own names, which are imported when they are asked for."""
    names = {
        _name(path).removeprefix("pybuild/").removesuffix(".py").replace("/", "."): path
        for path in _package()
        if path.name != "__init__.py"
    }
    arrows = {
        name: {module.removeprefix("pybuild.") for module in _imports(path)}
        & names.keys()
        for name, path in names.items()
    }
    assert _circles(arrows) == set()
    assert _circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == {frozenset("bc")}


def test_one_version() -> None:
    """pybuild/VERSION says it; meson, the wheel and `__version__` read it there."""
    version = (ROOT / "pybuild" / "VERSION").read_text().strip()
    assert pybuild.__version__ == version and re.fullmatch(r"\d+\.\d+\.\d+", version)
    said = re.compile(rf"version\b[^\n]{{0,9}}{re.escape(version)}")
    assert [_name(path) for path, text in _texts() if said.search(text)] == []


def test_an_upward_import_is_seen() -> None:
    source = ast.parse("import pybuild.host.jit\nfrom pybuild import cli, model")
    assert isinstance(source.body[0], ast.Import)
    path = ROOT / "pybuild" / "dtype.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{__name__}._tree", lambda _: source)
        assert [line.split()[-1] for line in _upward(path)] == [
            "pybuild.host.jit",
            "pybuild.cli",
            "pybuild.model",
        ]


def test_no_include_goes_up() -> None:
    crt = ROOT / "crt"
    wrong = []
    for path in _files(".c", ".h"):
        if not path.is_relative_to(crt):
            continue
        for name in re.findall(r'#include "crt/(\w+)\.h"', path.read_text()):
            if C_FLOORS[name] > C_FLOORS[path.stem]:
                wrong.append(f"{_name(path)} includes crt/{name}.h")
    assert not wrong, "\n" + "\n".join(wrong)


# ---- sizes ----------------------------------------------------------------


def _limit(path: Path) -> int:
    return {".c": 500, ".cpp": 500, ".h": 250}.get(path.suffix, 400)


def test_files_are_short() -> None:
    lengths = {
        _name(path): len(path.read_text().splitlines())
        for path in _files(".py", *C_SUFFIXES)
        if len(path.read_text().splitlines()) > _limit(path)
    }
    assert lengths == {}
    assert len((ROOT / "dev").read_text().splitlines()) <= 150


def test_lines_are_short() -> None:
    wide = []
    for path in _files(".py", *C_SUFFIXES):
        limit = 88 if path.suffix == ".py" else 80
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line) > limit:
                wide.append(f"{_name(path)}:{number}")
    assert not wide, "\n" + "\n".join(wide)


def _python_functions() -> dict[str, int]:
    """Lines of each function of pybuild, docstring and signature included."""
    return {
        f"{_name(path)}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path in _package()
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None
    }


def _c_functions() -> dict[str, int]:
    found = {}
    for path in _files(".c"):
        if not path.is_relative_to(ROOT / "crt"):
            continue
        lines = path.read_text().splitlines()
        opens = [n for n, line in enumerate(lines) if line == "{"]
        for start in opens:
            found[f"{_name(path)}:{start}"] = lines[start:].index("}") + 1
    return found


@pytest.mark.parametrize("lengths", [_python_functions, _c_functions])
def test_functions_are_short(lengths) -> None:  # type: ignore[no-untyped-def]
    found = lengths()
    ordered = sorted(found.values())
    assert statistics.median(ordered) <= 15
    assert ordered[int(len(ordered) * 0.9)] <= 40
    assert {name: n for name, n in found.items() if n > 80} == {}


# ---- what a file says -----------------------------------------------------


def _opening(path: Path) -> int:
    """Lines of text at the top that say what the file is for."""
    text = path.read_text()
    if path.suffix == ".py":
        said = ast.get_docstring(_tree(path)) or ""
    else:
        match = re.match(r"/\*(.*?)\*/|((?://[^\n]*\n)+)", text, re.DOTALL)
        said = (match[1] or match[2]) if match else ""
    return sum(bool(line.strip(" */")) for line in said.splitlines())


def test_files_open_with_what_they_are_for() -> None:
    wrong = {
        _name(path): _opening(path)
        for path in _files(".py", *C_SUFFIXES)
        if path.read_text().strip() and not 1 <= _opening(path) <= 5
    }
    assert wrong == {}


MACHINE = ("/" + "work/", "/opt" + "/", "." + "library", "/" + "root/", "/home" + "/")
UNFINISHED = ("TO" + "DO", "FIX" + "ME", "XX" + "X")


def _texts() -> Iterator[tuple[Path, str]]:
    for path in _files():
        try:
            yield path, path.read_text()
        except UnicodeDecodeError:
            continue  # a model, an image


def test_no_file_names_this_machine() -> None:
    here = [
        f"{_name(path)}: {word}"
        for path, text in _texts()
        for word in MACHINE
        if re.search(rf"(?<!\w){re.escape(word)}", text)
    ]
    assert not here, "\n" + "\n".join(here)


def test_nothing_is_left_for_later() -> None:
    left = [
        f"{_name(path)}: {word}"
        for path, text in _texts()
        for word in UNFINISHED
        if re.search(rf"\b{word}\b", text)
    ]
    assert not left, "\n" + "\n".join(left)


def test_names_say_the_thing() -> None:
    vague = re.compile(r"manager|helper|utils?$|^misc|^common$", re.IGNORECASE)
    # contrib/ has TVM's names
    names = [path.stem for path in _python() if path.parent.name != "contrib"]
    for path in _package():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                names.append(node.name)
    assert [name for name in names if vague.search(name)] == []


def test_public_dataclasses_are_frozen() -> None:
    thawed = []
    for path in _package():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ClassDef) and node.name[0] != "_":
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                if any(
                    mark.startswith("dataclass") and "frozen=True" not in mark
                    for mark in marks
                ):
                    thawed.append(f"{_name(path)}: {node.name}")
    assert not thawed, "\n" + "\n".join(thawed)


def test_c_allocates_and_prints_nothing() -> None:
    words = r"\b(malloc|calloc|realloc|free|printf|puts|abort|alloca|setjmp)\s*\("
    wrong = [
        _name(path)
        for path in _files(".c", ".h")
        if path.is_relative_to(ROOT / "crt") and re.search(words, path.read_text())
    ]
    assert not wrong, "\n" + "\n".join(wrong)
