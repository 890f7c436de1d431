"""Says where the processor's time of a test run goes: `python -m tests.profile run OUT
[ARGS]` is `./dev test ARGS` and fills OUT, `python -m tests.profile table OUT` prints
the tables of OUT. A child's seconds are told by its program: compile, link, simulate.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

import pytest

FOLDER = "CRT_PROFILE"
DEAREST = 40
COMPILERS = ("gcc", "g++", "cc", "c++", "clang", "clang++", "clang-19", "zig")
LINKERS = ("ld", "ld.lld", "lld", "ar")
BUILD_TOOLS = ("make", "cmake", "ninja", "meson", "pio", "scons", "arduino-builder")
PYTHON, SET_UP = "python", "set-up of fixtures"
# what one phase of one test took: seconds by kind
Taken: TypeAlias = Counter[str]

_inside: Taken = Counter()
_children: dict[int, str] = {}


def kind_of(command: Sequence[str]) -> str:
    """What a child process does, by its command line."""
    words = [os.path.basename(word) for word in command]
    program = words[0] if words else ""
    if program.startswith(("python", "crt")) and "ziglang" not in words:
        return "meson, cmake, make" if set(words[:3]) & set(BUILD_TOOLS) else "pybuild"
    if program.startswith("python"):
        program = "zig"
    if program.startswith(("qemu-", "simavr")):
        return "simulate"
    if program in BUILD_TOOLS:
        return "meson, cmake, make"
    if program in LINKERS or any(word in words for word in ("build-exe", "build-lib")):
        return "link"
    if program.endswith(COMPILERS):
        only = {"-c", "-S", "-E", "-fsyntax-only"} & set(words)
        return "compile" if only else "compile and link"
    return "other programs"


def _watch_children() -> None:
    """Keeps what each child took, by what it does."""
    popen, wait = subprocess.Popen.__init__, os.waitpid

    @wraps(popen)
    def started(self: Any, args: Any, *rest: Any, **options: Any) -> None:
        popen(self, args, *rest, **options)
        words = [args] if isinstance(args, (str, bytes, os.PathLike)) else args
        _children[self.pid] = kind_of([os.fsdecode(word) for word in words])

    def waited(pid: int, flags: int) -> tuple[int, int]:
        if pid not in _children:
            return wait(pid, flags)
        done, status, used = os.wait4(pid, flags)
        if done:
            _inside[_children.pop(done)] += used.ru_utime + used.ru_stime
        return done, status

    vars(subprocess)["os"] = _Waiting(waited)
    subprocess.Popen.__init__ = started  # type: ignore[method-assign]
    poll = subprocess.Popen._internal_poll  # type: ignore[attr-defined]
    vars(subprocess.Popen)["_internal_poll"].__defaults__ = (
        *poll.__defaults__[:1],
        waited,
        *poll.__defaults__[2:],
    )


class _Waiting:
    """The module `os` as `subprocess` sees it, with another waitpid."""

    def __init__(self, waitpid: Callable[[int, int], tuple[int, int]]) -> None:
        self.waitpid = waitpid

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def _watch(owner: Any, name: str, kind: str) -> None:
    """Counts what a function of this process takes as `kind`, once where it nests."""
    function, depth = getattr(owner, name), 0

    @wraps(function)
    def timed(*args: Any, **options: Any) -> Any:
        nonlocal depth
        before, depth = time.process_time(), depth + 1
        try:
            return function(*args, **options)
        finally:
            depth -= 1
            if not depth:
                _inside[kind] += time.process_time() - before

    setattr(owner, name, timed)


def _watch_functions() -> None:
    """What is slow within a process of Python."""
    import llvmlite.binding as llvm

    from pybuild.emit.llvm import passes

    _watch(passes, "optimise", "LLVM")
    _watch(llvm.TargetMachine, "emit_object", "LLVM")
    _watch(llvm.ExecutionEngine, "finalize_object", "LLVM")
    _watch(llvm, "parse_assembly", "LLVM")
    try:
        import unicorn
    except ImportError:
        return
    _watch(unicorn.Uc, "emu_start", "simulate")


class Recorder:
    """Writes what each phase of each test took, a line of JSON each."""

    def __init__(self, file: Path) -> None:
        self.file = file.open("a")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        yield from self._phase(item, "setup")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        yield from self._phase(item, "call")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        yield from self._phase(item, "teardown")

    def _phase(self, item: pytest.Item, phase: str) -> Generator[None, Any, Any]:
        _inside.clear()
        before = _spent()
        try:
            return (yield)
        finally:
            total = _spent() - before
            taken = {kind: round(seconds, 3) for kind, seconds in _inside.items()}
            line = {"test": item.nodeid, "phase": phase, "total": round(total, 3)}
            self.file.write(json.dumps({**line, "kinds": taken}) + "\n")
            self.file.flush()


def _spent() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(one.ru_utime + one.ru_stime for one in used)


def pytest_configure(config: pytest.Config) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    folder = os.environ.get(FOLDER)
    if not folder or (worker == "alone" and config.getoption("numprocesses", None)):
        return
    _watch_children()
    _watch_functions()
    config.pluginmanager.register(Recorder(Path(folder, f"{worker}.jsonl")))


def read(folder: Path) -> list[dict[str, Any]]:
    """The records of a run."""
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.open()]


def _kinds(record: dict[str, Any]) -> Taken:
    """What a phase took, by kind; Python took what nothing else did."""
    kinds: Taken = Counter(record["kinds"])
    kinds[PYTHON] += max(record["total"] - sum(kinds.values()), 0.0)
    return kinds


def _room(test: str) -> str:
    parts = test.split("::")[0].split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def tables(records: Iterable[dict[str, Any]]) -> str:
    """By kind, by folder and the dearest, as Markdown."""
    records = list(records)
    by_kind: Taken = Counter()
    by_room: Taken = Counter()
    set_up: Taken = Counter()
    by_test: Taken = Counter()
    for record in records:
        by_kind.update(_kinds(record))
        by_room[_room(record["test"])] += record["total"]
        if record["phase"] == "setup":
            set_up[_room(record["test"])] += record["total"]
        by_test[f"{record['test']} ({record['phase']})"] += record["total"]
    whole = sum(by_kind.values())
    fixtures = sum(set_up.values())
    lines = [f"{whole:,.0f} seconds, {fixtures:,.0f} of them {SET_UP}."]
    lines += ["", "| phase | seconds | share |", "|---|---:|---:|"]
    for kind, seconds in by_kind.most_common():
        lines.append(f"| {kind} | {seconds:,.0f} | {seconds / whole:.0%} |")
    lines += ["", f"| tests | seconds | {SET_UP} |", "|---|---:|---:|"]
    for room, seconds in by_room.most_common():
        lines.append(f"| {room} | {seconds:,.0f} | {set_up[room]:,.0f} |")
    lines += ["", "| dearest | seconds |", "|---|---:|"]
    for test, seconds in by_test.most_common(DEAREST):
        lines.append(f"| `{test}` | {seconds:,.1f} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    verb, folder, *rest = arguments
    if verb == "table":
        print(tables(read(Path(folder))), end="")
        return 0
    from tests import everything

    Path(folder).mkdir(parents=True, exist_ok=True)
    os.environ[FOLDER] = str(Path(folder).absolute())
    return everything.main(["-p", "tests.profile", *rest])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
