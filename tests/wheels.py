"""What people install: sdist and wheels, made once for each content of the tree, and
environments that hold a wheel and what it needs, but nothing of the checkout.

Knows no test.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
MADE = ROOT / "build" / "installed"
# what a wheel is made of
SHIPPED = (
    "pybuild",
    "crt",
    "boards",
    "meson.build",
    "pyproject.toml",
    "LICENSE",
    "README.md",
)
PROJECT = "pybuild-crt"
# what runs tests; of the project itself nothing may need them
RUNNERS = ("pytest", "pytest-xdist", "pytest-timeout")
COMPILERS = ("cc", "gcc", "clang")
# of this machine, where no compiler is to be found
PROGRAMS = ("sh", "env", "uname", "true")
TOOLS = ("meson", "ninja")
EPOCH = "1700000000"  # when a release is said to be made
NO_NETWORK = """\
import sys


def _refuse(event, arguments):
    if event == "socket.getaddrinfo" and arguments[0] not in ("127.0.0.1", "localhost"):
        raise OSError(f"no network: asked for {arguments[0]}")


sys.addaudithook(_refuse)
"""


@dataclass(frozen=True)
class Distributions:
    """direct  the wheel of a release, for every system, made of the tree
    wheel   of this machine, made of the sdist, in isolation
    """

    direct: Path
    sdist: Path
    wheel: Path


@dataclass(frozen=True)
class Setting:
    """What a user's machine has.

    extras   of the project, that were installed
    without  distributions that these name and this machine has not
    path     whether all programs of this machine are found; else PROGRAMS alone
    network  whether names of other machines are looked up
    sdist    the wheel is the one that is made of the sdist, on this machine
    """

    name: str
    extras: tuple[str, ...]
    without: frozenset[str]
    path: bool
    network: bool = True
    sdist: bool = False


SETTINGS = (
    Setting("gcc", ("boards", "verify"), frozenset({"ziglang"}), path=True),
    Setting("zig", ("boards", "verify"), frozenset(), path=False),
    Setting("none", (), frozenset(), path=False, network=False),
    Setting(
        "sdist", ("boards", "verify"), frozenset({"ziglang"}), path=True, sdist=True
    ),
)


def call(words: Iterable[object], cwd: Path, env: dict[str, str] | None = None) -> str:
    """What a program printed on both streams; it must succeed."""
    command = [str(word) for word in words]
    done = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


def copy_tree(tree: Path, names: Iterable[str]) -> None:
    """Files and folders of the repository."""
    tree.mkdir(parents=True, exist_ok=True)
    junk = shutil.ignore_patterns("__pycache__")
    for name in names:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=junk)
        elif source.is_file():
            shutil.copy(source, tree)


def _content() -> str:
    content = hashlib.sha256()
    for name in SHIPPED:
        for path in sorted((ROOT / name, *(ROOT / name).rglob("*"))):
            if path.is_file() and "__pycache__" not in path.parts:
                content.update(path.relative_to(ROOT).as_posix().encode())
                content.update(path.read_bytes())
    return content.hexdigest()[:16]


def extract(archive: tarfile.TarFile, folder: Path) -> None:
    """All files of an archive, by tarfile's filter "data" where Python has it: 3.11.2,
    which is Debian 12's, has not."""
    plain = getattr(tarfile, "data_filter", lambda member, path: member)
    archive.extraction_filter = plain
    archive.extractall(folder)


def distributions() -> Distributions:
    """Of the tree as it is now; older ones are removed."""
    MADE.mkdir(parents=True, exist_ok=True)
    with (MADE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = MADE / f"dist-{_content()}"
        if not folder.is_dir():
            for old in MADE.glob("dist-*"):
                shutil.rmtree(old)
            new = MADE / "dist-new"
            shutil.rmtree(new, ignore_errors=True)  # of a build that failed
            _make(new)
            shutil.rmtree(new / "tree")
            new.rename(folder)
    (direct,) = (folder / "direct").glob("*.whl")
    (sdist,) = (folder / "isolated").glob("*.tar.gz")
    (wheel,) = (folder / "isolated").glob("*.whl")
    return Distributions(direct, sdist, wheel)


def _make(folder: Path) -> None:
    tree = folder / "tree"
    copy_tree(tree, SHIPPED)
    build = [sys.executable, "-m", "build"]
    # in isolation zig would make its C library for Windows anew, which takes minutes
    every = ("-C", "systems=all")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # has meson
    env = {**os.environ, "PATH": path, "SOURCE_DATE_EPOCH": EPOCH}
    call([*build, "-w", "-n", *every, "-o", folder / "direct", tree], folder, env)
    # an sdist is what is committed
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "all")):
        call(["git", *words], tree)
    isolated = folder / "isolated"
    call([*build, "-s", "-n", "-o", isolated, tree], folder, env)
    (sdist,) = isolated.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        extract(archive, folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    call([*build, "-w", "-o", isolated, unpacked], folder)
    shutil.rmtree(folder / "unpacked")


def _needed(setting: Setting) -> list[metadata.Distribution]:
    """Of the running environment: what the wheel with these extras asks for, what that
    asks for, and what runs tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    todo = [*RUNNERS, *project["dependencies"]]
    todo += [line for extra in setting.extras for line in extras[extra]]
    found: dict[str, metadata.Distribution] = {}
    while todo:
        wanted = Requirement(todo.pop())
        name = wanted.name.lower().replace("_", "-").replace(".", "-")
        marker = wanted.marker
        if name in found or name in setting.without:
            continue
        if marker is None or marker.evaluate({"extra": ""}):
            found[name] = metadata.distribution(name)
            todo += found[name].requires or ()
    return [found[name] for name in sorted(found)]


def environment(setting: Setting, wheel: Path) -> Path:
    """The folder of a virtual environment with the wheel and what it needs, which is
    linked to from the running environment; made again only if anything changed."""
    folder = MADE / setting.name
    needed = _needed(setting)
    versions = [f"{there.name} {there.version}" for there in needed]
    state = "\n".join((str(setting), wheel.parts[-3], sys.version, *versions))
    done = folder / "state"
    if done.is_file() and done.read_text() == state:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    call([sys.executable, "-m", "venv", "--without-pip", folder], ROOT)
    python = folder / "bin" / "python"
    say = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(call([python, "-c", say], folder).strip())
    for there in needed:
        _link(there, site)
    # with pip's own check that all it needs is there, and without an index
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q"]
    call([*pip, "--no-index", "--disable-pip-version-check", wheel], folder)
    if not setting.network:
        (site / "no_network.py").write_text(NO_NETWORK)
        (site / "no_network.pth").write_text("import no_network\n")
    _programs(folder / "programs", setting)
    done.write_text(state)
    return folder


def _link(there: metadata.Distribution, site: Path) -> None:
    tops = {file.parts[0] for file in there.files or ()} - {"..", "__pycache__"}
    for top in sorted(tops):
        if not top.endswith(".pth") and not (site / top).exists():
            (site / top).symlink_to(Path(str(there.locate_file(top))).resolve())


def _programs(folder: Path, setting: Setting) -> None:
    folder.mkdir()
    if setting.path:
        own = Path(sysconfig.get_path("scripts"))
        found = {name: shutil.which(name, path=str(own)) for name in TOOLS}
    else:
        found = {name: shutil.which(name) for name in PROGRAMS}
    for name, path in found.items():
        assert path is not None, f"there is no {name}"
        (folder / name).symlink_to(path)


def variables(setting: Setting, folder: Path) -> dict[str, str]:
    """The environment variables of a user who has this environment."""
    own = {"CC", "AR", "PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"}
    env = {name: value for name, value in os.environ.items() if name not in own}
    path = [str(folder / "bin"), str(folder / "programs")]
    if setting.path:
        inside = os.environ["PATH"].split(os.pathsep)
        path += [place for place in inside if not Path(place).is_relative_to(ROOT)]
    env["PATH"] = os.pathsep.join(path)
    env["XDG_CACHE_HOME"] = str(MADE / "cache")
    env["CRT_SETTING"] = setting.name
    return env
