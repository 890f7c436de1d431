"""Who opens files, and who prints: what everybody else goes through is in
pybuild/files/. Each exception is named, with why it needs none of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.toolchains import ROOT

PACKAGE = ROOT / "pybuild"
OURS = "a file that is installed with pybuild"
ALONE = "in a folder of ours, new, that nobody else may write to"
MADE = "what a tool has made there of our files"
LOADED = "a model or samples that pybuild.load or a check of it has read before"
# reading
READS = {
    "__init__.py": OURS, "install.py": OURS, "html/page.py": OURS, "host/abi.py": OURS,
    "targets/names.py": OURS, "executor/archive_write.py": OURS,
    "evidence/tool.py": OURS,
    "package/tree.py": OURS, "ecosystems/packages.py": OURS, "rpc/remote.py": OURS,
    "ecosystems/tvm.py": OURS, "ecosystems/esphome.py": OURS,
    "ecosystems/rust.py": OURS,
    "boards/simulators/count.py": OURS, "boards/firmware/export.py": OURS,
    "evidence/write.py": OURS,
    "boards/firmware/build.py": MADE, "boards/firmware/elf.py": MADE,
    "boards/firmware/stack.py": MADE, "boards/firmware/server.py": MADE,
    "boards/simulators/qemu.py": MADE, "host/cc.py": MADE,
    "verify/reference.py": LOADED,
    "verify/own_samples.py": LOADED, "verify/standard.py": LOADED,
    "verify/onnx_reference.py": LOADED, "sweeps/files.py": LOADED,
    "cli/__init__.py": "os.devnull, in the place of a stream that is closed",
    "files/read.py": "the one that reads", "files/write.py": "what it writes",
}  # fmt: skip
WRITES = {
    "boards/firmware/build.py": ALONE, "boards/firmware/server.py": ALONE,
    "boards/simulators/qemu.py": ALONE, "host/jit.py": ALONE, "host/cc.py": ALONE,
    "executor/archive.py": ALONE, "sweeps/files.py": ALONE, "evidence/write.py": ALONE,
    "rebuild.py": ALONE,
    "files/write.py": "the one that writes",
    "cli/__init__.py": "os.devnull, in the place of a stream that is closed",
}  # fmt: skip
PRINTS = {
    "files/say.py": "the one that prints",
    "html/schema.py": "a program of its own: a schema of ours",
    "options/page.py": "a program of its own: a page of ours",
    "cli/output/tables.py": "tables of rich, whose cells package/grid.py has escaped",
    "cli/output/progress.py": "what rich draws, of a text that is escaped",
    "cli/__init__.py": "os.devnull, in the place of a stream that is closed",
}
_READ = {"read_bytes", "read_text"}
_WRITE = {"write_bytes", "write_text"}
_WRITERS = {
    ("shutil", "copy"), ("shutil", "copyfile"), ("shutil", "copytree"),
    ("shutil", "move"), ("os", "replace"), ("np", "savez"), ("np", "save"),
}  # fmt: skip
_PRINTERS = {
    ("console", "print"), ("sys.stdout", "write"), ("sys.stderr", "write"),
}  # fmt: skip


def _calls(tree: ast.AST) -> set[tuple[str, str]]:
    """(what, the name that is called)"""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {found for node in calls for found in _does(node)}


def _does(node: ast.Call) -> Iterator[tuple[str, str]]:
    called = node.func
    if isinstance(called, ast.Name):
        if called.id == "open":
            yield _way(node.args[1:]), "open"
        if called.id == "print":
            yield "prints", "print"
        return
    if not isinstance(called, ast.Attribute):
        return
    owner, name = ast.unparse(called.value), called.attr
    if name in _READ or (owner, name) == ("os", "open"):
        yield "reads", name
    if (owner, name) == ("onnx", "load") and len(node.args) == 1:  # not a front end's
        yield "reads", name
    if name == "open" and owner not in ("tarfile", "os"):
        yield _way(node.args), name
    if name in _WRITE or (owner, name) in _WRITERS:
        yield "writes", name
    if (owner, name) in _PRINTERS:
        yield "prints", name


def _way(modes: list[ast.expr]) -> str:
    words = [one.value for one in modes if isinstance(one, ast.Constant)]
    return "writes" if any(set(str(w)) & set("wxa+") for w in words) else "reads"


def _who(what: str) -> dict[str, set[str]]:
    made: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(("_build/", "_data/")):  # before pybuild is there
            continue
        called = {n for kind, n in _calls(ast.parse(path.read_text())) if kind == what}
        if called:
            made[name] = called
    return made


def test_one_function_reads() -> None:
    found = _who("reads")
    assert {n: c for n, c in found.items() if n not in READS} == {}
    assert set(READS) - set(found) == set()


def test_one_function_writes() -> None:
    found = _who("writes")
    assert {n: c for n, c in found.items() if n not in WRITES} == {}


def test_one_function_prints() -> None:
    found = _who("prints")
    assert {n: c for n, c in found.items() if n not in PRINTS} == {}


def test_who_goes_around_is_seen() -> None:
    for text, what in (
        ("open('x')", "reads"), ("p.read_bytes()", "reads"), ("p.open('rb')", "reads"),
        ("open('x', 'w')", "writes"), ("p.write_text('')", "writes"),
        ("shutil.copy(a, b)", "writes"), ("print(1)", "prints"),
        ("sys.stdout.write('')", "prints"), ("np.savez(p, a=1)", "writes"),
    ):  # fmt: skip
        assert what in {kind for kind, _ in _calls(ast.parse(text))}, text
    assert _calls(ast.parse("read_bytes(p); write_bytes(p, b'')")) == set()


def test_no_parser_of_others_text_is_called_but_one() -> None:
    """tomllib, which takes gigabytes for kilobytes, unless they are limited before."""
    own = {"files/parse.py", "targets/names.py", "evidence/tool.py"}  # the rest: OURS
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in Path(PACKAGE).rglob("*.py")
        if "tomllib.load" in path.read_text()
    }
    assert users == own
