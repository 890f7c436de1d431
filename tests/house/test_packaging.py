"""The wheel: built without a C compiler, complete, and enough by itself."""

from __future__ import annotations

import functools
import hashlib
import http.server
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybuild import install
from tests.toolchains import ROOT, absent, require_module
from tests.wheels import SHIPPED, call, copy_tree, distributions

# with an empty cache zig makes the C library of each system first
pytestmark = pytest.mark.timeout(6000)

MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"
DATA = "pybuild/_data/"
LIBRARIES = f"{DATA}lib/"
ANSWER = """
import numpy, pybuild, sys
from pybuild import install
from pybuild.ops.interpret import interpret
assert not install.is_checkout() and install.host_compiler() == ()
library = pybuild.load(sys.argv[1]).build(name="digits")
net = library.host(backend="llvm")
graph = library.plan.graph
tensor = graph.tensor(graph.inputs[0])
image = numpy.arange(tensor.size).reshape(tensor.shape).astype(tensor.dtype.numpy)
net.run(**{tensor.name: image})
wanted = interpret(graph, {tensor.name: image})[graph.outputs[0]]
assert numpy.array_equal(net.get_output(0), wanted)
print("equal")
"""


def _without_compiler(folder: Path, *more: Path) -> dict[str, str]:
    """An environment in which no C compiler is found."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("sh", "uname", "env"):
        if not (tools / name).exists():
            (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    path = os.pathsep.join(map(str, (*more, tools)))
    return {**_clean(), "PATH": path}


def _clean() -> dict[str, str]:
    mine = {"CC", "AR", "PYTHONPATH", "VIRTUAL_ENV"}
    return {name: value for name, value in os.environ.items() if name not in mine}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("build", "mesonpy", "ziglang"):
        require_module(module)
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    copy_tree(tree, SHIPPED)
    env = _without_compiler(folder, Path(sysconfig.get_path("scripts")))
    assert not any(shutil.which(cc, path=env["PATH"]) for cc in ("cc", "gcc", "clang"))
    command = [sys.executable, "-m", "build", "-w", "-n", "-o", folder, tree]
    call(command, folder, env)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_wheel_holds_everything_once(wheel: Path) -> None:
    assert wheel.name.startswith("pybuild_crt-")
    assert wheel.name.split("-")[2:4] == ["py3", "none"]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    assert len(names) == len(set(names))
    data = DATA
    for folder, place in (("pybuild", ""), ("crt", data), ("boards", data)):
        wanted = {
            place + path.relative_to(ROOT).as_posix()
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and not {"__pycache__", "_build"} & set(path.parts)
        }
        assert wanted <= set(names)
    carried = [name for name in names if name.startswith(LIBRARIES)]
    library = install.host_library().name
    assert carried == [f"{LIBRARIES}{install.system()}/{library}"]
    assert not [name for name in names if "_build/" in name or "__pycache__" in name]


def _contents(wheel: Path) -> dict[str, bytes]:
    """Of all files but compiled ones, the tag, and the list that has their hashes."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        compiled = {name for name in names if name.startswith(LIBRARIES)}
        about = {n for n in names if n.endswith((".dist-info/WHEEL", "/RECORD"))}
        assert compiled and len(about) == 2
        return {name: archive.read(name) for name in names - compiled - about}


@pytest.mark.slow
def test_the_sdist_gives_the_same_wheel() -> None:
    """But for the libraries: of this machine alone. What is made of the tree is what
    tests/installed runs with.
    """
    made = distributions()
    assert made.direct.name.split("-")[:3] == made.wheel.name.split("-")[:3]
    assert _contents(made.direct) == _contents(made.wheel)
    assert "pybuild/py.typed" in _contents(made.wheel)


@pytest.mark.sweep
def test_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", wheel]
    done = subprocess.run(install, capture_output=True, text=True)
    if "No matching distribution" in done.stderr or "onnection" in done.stderr:
        absent(f"no package index: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    env = _without_compiler(tmp_path, python.parent)
    assert call([python, "-c", ANSWER, MODEL], tmp_path, env) == "equal\n"
    build = ["crt", "build", MODEL, "-o", tmp_path / "out", "--name", "digits"]
    call(build, tmp_path, env)
    assert (tmp_path / "out" / "digits.h").is_file()


@pytest.mark.sweep
def test_a_board_with_pip_alone(wheel: Path, tmp_path: Path) -> None:
    """No compiler and no QEMU: zig builds, Unicorn counts, in less than a minute."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", f"{wheel}[boards]"]
    done = subprocess.run(install, capture_output=True, text=True)
    if "No matching distribution" in done.stderr or "onnection" in done.stderr:
        absent(f"no package index: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    env = _without_compiler(tmp_path, python.parent)
    env |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = ["crt", "bench", MODEL, "--on", "mps2-an386", "--json"]
    before = os.times()
    seen = json.loads(call(command, tmp_path, env))
    after = os.times()
    assert seen["toolchain"]["name"] == "zig" and "Unicorn" in seen["simulator"]
    assert 20_000 < seen["instructions"] < 100_000
    spent = after.children_user - before.children_user
    assert spent + after.children_system - before.children_system < 60


# ---- dev ------------------------------------------------------------------

COREUTILS = ("sh", "env", "id", "dirname", "cat", "rm", "mv", "uname")
REFUSED = "raise ImportError('not on this machine')\n"


@pytest.mark.slow
def test_dev_demo_on_a_bare_machine(tmp_path: Path) -> None:
    """No C compiler, no apt, a python3 without ensurepip and without pip."""
    tree = tmp_path / "tree"
    copy_tree(tree, (*SHIPPED, "dev", ".ci", "examples"))
    tools = tmp_path / "tools"
    hidden = tmp_path / "hidden"
    for folder in (tools, hidden):
        folder.mkdir()
    for name in COREUTILS:
        (tools / name).symlink_to(shutil.which(name) or absent(f"no {name}"))
    for name in ("ensurepip.py", "pip.py"):
        (hidden / name).write_text(REFUSED)
    base = Path(sys.base_prefix) / "bin" / "python3"
    python = tools / "python3"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{hidden}" exec "{base}" "$@"\n')
    python.chmod(0o755)
    env = {**_clean(), "PATH": str(tools)}
    done = subprocess.run(
        ["./dev", "demo"], env=env, cwd=tree, capture_output=True, text=True
    )
    if "URLError" in done.stderr or "onnection" in done.stderr:
        absent(f"no package index: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "accuracy" in done.stdout.lower()
    # zig is there in place of a machine's own compiler
    sizes = [
        path.lstat().st_blocks * 512
        for path in (tree / ".venv").rglob("*")
        if not path.is_symlink() and "ziglang" not in path.parts
    ]
    assert 100e6 < sum(sizes) < 400e6


# ---- .ci/packages.py ------------------------------------------------------


def _versions(text: str) -> dict[str, str]:
    return dict(line.split("==") for line in text.splitlines() if line[0] != "#")


def test_all_that_tests_need_has_a_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    wanted += [r for e in ("boards", "docs", "test", "verify") for r in extras[e]]
    pinned = _versions((ROOT / ".ci" / "constraints.txt").read_text())
    for line in wanted:
        name, *least = line.partition(";")[0].split(" >= ")
        assert _numbers(pinned[name]) >= _numbers(*least), line


def _numbers(version: str = "0") -> list[int]:
    return [int(part) for part in version.split(".")]


def test_versions_are_written_as_they_are_installed() -> None:
    command = [sys.executable, ROOT / ".ci" / "packages.py", "--pin"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    written = _versions(done.stdout)
    for name in ("numpy", "pycparser"):  # which cffi needs, not we
        assert written[name] == importlib.metadata.version(name)


# ---- .ci/bootstrap_pip.py -------------------------------------------------


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A package index with this Python's own pip, and two that must not be taken."""
    bundled = list(
        (Path(sysconfig.get_path("stdlib")) / "ensurepip").rglob("pip-*.whl")
    )
    bundled += list(Path("/usr/share/python-wheels").glob("pip-*.whl"))
    if not bundled:
        absent("this Python has no bundled pip wheel")
    data = bundled[0].read_bytes()
    page = tmp_path / "index" / "pip"
    page.mkdir(parents=True)
    (page / bundled[0].name).write_bytes(data)
    (page / "index.html").write_text(
        f'<a href="pip-0.1-py3-none-any.whl">pip-0.1-py3-none-any.whl</a>\n'
        f'<a href="pip-99.0-py3-none-any.whl" data-requires-python="&gt;=4.0">'
        f"pip-99.0-py3-none-any.whl</a>\n"
        f'<a href="{bundled[0].name}#sha256={hashlib.sha256(data).hexdigest()}" '
        f'data-requires-python="&gt;=3.7">{bundled[0].name}</a>\n'
    )
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=str(page.parent)
    )
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def _bootstrap(index: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Runs the script where no pip is outside; PATH's python3 has none."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3").chmod(0o755)
    bare = tmp_path / "bare"
    command = [sys.executable, "-m", "venv", "--without-pip", bare]
    subprocess.run(command, check=True)
    env = {"PATH": str(tools), "PIP_INDEX_URL": index, "HOME": str(tmp_path)}
    script = ROOT / ".ci" / "bootstrap_pip.py"
    command = [bare / "bin" / "python", script]
    return subprocess.run(command, env=env, capture_output=True, text=True)


def test_pip_comes_from_the_index(index: str, tmp_path: Path) -> None:
    done = _bootstrap(index, tmp_path)
    assert done.returncode == 0, done.stderr
    pip = [tmp_path / "bare" / "bin" / "python", "-m", "pip", "--version"]
    assert subprocess.run(pip, capture_output=True).returncode == 0


def test_pip_with_another_hash_is_refused(index: str, tmp_path: Path) -> None:
    page = tmp_path / "index" / "pip" / "index.html"
    page.write_text(page.read_text().replace("#sha256=", "#sha256=0"))
    done = _bootstrap(index, tmp_path)
    assert done.returncode != 0 and "hash" in done.stderr


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a copy of ./dev mutate")
def test_only_plain_files_that_nothing_ignores_are_committed() -> None:
    # A link to one developer's environment was once committed and broke clones.
    listed = call(["git", "ls-files", "--stage"], ROOT).splitlines()
    assert len(listed) > 100
    assert [line for line in listed if not line.startswith("100")] == []
    ignored = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert call(ignored, ROOT) == ""
