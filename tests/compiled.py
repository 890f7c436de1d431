"""Machine code that LLVM made is kept from test to test and run to run, by the content
of the module, LLVM, its passes and the machine; what C compilers made, by ccache.

CRT_COMPILED: the folder, else build/compiled; empty: everything is compiled.
plainly(): what is compiled then is not optimised, in a third of the time.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from pybuild.emit.llvm import passes
from pybuild.host import jit

ROOT = Path(__file__).resolve().parent.parent
WRAPPERS = Path("/usr/lib/ccache")  # of Debian: each compiler's name, by ccache
APART = ROOT / "tests" / "apart.sh"  # what their names here are
DAYS = 14  # that nothing was asked for, until it is removed
_engine = llvm.create_mcjit_compiler
_target_machine = llvm.Target.create_target_machine
_plain = False
_WITH = f"{llvmlite.__version__} {llvm.llvm_version_info} {inspect.getsource(passes)}"


def folder() -> Path | None:
    """Where it is kept, or None."""
    given = os.environ.get("CRT_COMPILED", str(ROOT / "build" / "compiled"))
    return Path(given) if given else None


def keep_compiled() -> None:
    """Of models that run in this process, from now on."""
    place = folder()
    if place is None:
        return
    place.mkdir(parents=True, exist_ok=True)
    _remove_old(place)
    vars(jit)["llvm_passes"] = SimpleNamespace(optimise=optimised_or_kept)
    llvm.create_mcjit_compiler = _engine_with_kept
    llvm.Target.create_target_machine = _machine


def keep_objects() -> None:
    """Of C compilers that this process and its children start, from now on."""
    place, paths = folder(), os.environ.get("PATH", "").split(os.pathsep)
    if place is None or not shutil.which("gcc") or not WRAPPERS.is_dir():
        return
    os.environ["CCACHE_DIR"] = str(place / "objects")
    os.environ["CCACHE_MAXSIZE"] = "2G"
    os.environ["CCACHE_NOHASHDIR"] = "1"  # each test has a folder of its own
    # and in it the same tree: a source's paths are told from where it lies
    os.environ["CCACHE_BASEDIR"] = tempfile.gettempdir()
    theirs = [path for path in paths if not Path(path, APART.name).exists()]
    theirs = [path for path in theirs if path != str(WRAPPERS)]
    os.environ["CCACHE_PATH"] = os.pathsep.join(theirs)
    os.environ["PATH"] = os.pathsep.join((str(_compilers(place)), *theirs))


def _compilers(place: Path) -> Path:
    """A folder with a program by the name of each compiler."""
    folder = place / "compilers"
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"new.{os.getpid()}"
    shutil.copy(APART, new)
    new.replace(folder / APART.name)
    for name in os.listdir(WRAPPERS):
        new.symlink_to(APART.name)
        new.replace(folder / name)
    return folder


def plainly(on: bool) -> None:
    """Whether code for this process is left as it was printed, from now on: it means
    the same, and LLVM's own passes are not what most tests are about."""
    global _plain
    _plain = on


def _machine(target: Any, **options: Any) -> Any:
    if _plain and options.get("jit"):
        options["opt"] = 0
    return _target_machine(target, **options)


def _remove_old(place: Path) -> None:
    before = time.time() - DAYS * 24 * 3600
    for file in place.iterdir():
        try:
            if file.stat().st_mtime < before:
                file.unlink()
        except OSError:  # another process was first
            continue


def optimised_or_kept(parsed: Any, machine: Any, host: bool) -> None:
    """As pybuild's `optimise`; nothing is left to do where the code is kept."""
    if folder() is None:
        _optimise(parsed, machine, host)
        return
    about = f"{_WITH} {machine.triple} {llvm.get_host_cpu_name()} "
    about += f"{llvm.get_host_cpu_features().flatten()} {_plain} "
    key = hashlib.sha256(about.encode() + parsed.as_bitcode()).hexdigest()
    if not _kept(key).is_file():
        _optimise(parsed, machine, host)
    parsed.name = key


def _optimise(parsed: Any, machine: Any, host: bool) -> None:
    if not _plain:
        passes.optimise(parsed, machine, host)


def _engine_with_kept(parsed: Any, machine: Any) -> Any:
    engine = _engine(parsed, machine)
    if len(parsed.name) == 64:  # the name of what is kept
        engine.set_object_cache(_keep, _take)
    return engine


def _kept(name: str) -> Path:
    place = folder()
    assert place is not None
    return place / name


def _keep(module: Any, code: bytes) -> None:
    new = _kept(f"{module.name}.{os.getpid()}")
    new.write_bytes(code)
    new.rename(_kept(module.name))


def _take(module: Any) -> bytes | None:
    file = _kept(module.name)
    if not file.is_file():
        return None
    os.utime(file)
    return file.read_bytes()
