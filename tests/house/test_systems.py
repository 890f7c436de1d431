"""What holds on every system, as far as it can be seen on one."""

from __future__ import annotations

import ast
import ctypes
import importlib
import os
import socket
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from pybuild import install
from pybuild.errors import BuildError
from pybuild.rpc.line import SerialLine, SocketLine
from pybuild.rpc.simulator import _listening
from tests.toolchains import ROOT, require_module

PACKAGE = sorted((ROOT / "pybuild").rglob("*.py"))
MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"


# ---- what no file of the package does -------------------------------------


def _calls(text: str) -> Iterator[tuple[int, str, ast.Call]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func).split(".")[-1], node


def _unportable(text: str) -> list[int]:
    """Lines that read or write text as this machine does, not as every machine."""
    found = []
    for line, name, call in _calls(text):
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        words = [ast.unparse(argument) for argument in call.args]
        is_open = name == "open" and isinstance(call.func, ast.Name)
        # our own read_text(path) is of UTF-8
        is_path = isinstance(call.func, ast.Attribute)
        if (
            name == "write_text"
            or given.get("text") == "True"
            or (name == "read_text" and is_path and "encoding" not in given)
            or (is_open and not _says_how(words, given))
        ):
            found.append(line)
    return found


def _says_how(words: list[str], given: dict[str | None, str]) -> bool:
    """Of a call of open(): bytes; or the encoding, and the line ends that it writes."""
    mode = words[1] if words[1:] else "'r'"
    return "b" in mode or (
        "encoding" in given and ("newline" in given or "w" not in mode)
    )


def test_text_is_utf8_with_short_line_ends_on_every_machine() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in PACKAGE
        for line in _unportable(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "path.write_text(x, encoding='utf-8')",  # \r\n on Windows
        "path.read_text()",
        "open(path)",
        "open(path, 'w', encoding='utf-8')",
        "subprocess.run(x, text=True)",
    ],
)
def test_what_depends_on_the_machine_is_seen(line: str) -> None:
    assert _unportable(line) == [1]
    assert _unportable("path.write_bytes(x); open(p, 'rb')") == []


POSIX = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}


def test_no_module_of_posix_is_imported() -> None:
    wrong = []
    for path in PACKAGE:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            wrong += [f"{path.name}: {name}" for name in names if name in POSIX]
    assert wrong == []


# ---- crt on this machine --------------------------------------------------


@pytest.fixture
def elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[types.ModuleType]:
    """pybuild.install as on another system: set sys.platform, then reload it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    yield install
    monkeypatch.undo()
    importlib.reload(install)


def _installed(there: types.ModuleType, data: Path) -> None:
    """As in an environment without the checkout, with a wheel that has `data`."""
    data.mkdir(parents=True, exist_ok=True)
    there._DATA = data  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("platform", "machine", "folder", "name"),
    [
        ("linux", "x86_64", "linux-x86_64", "libcrt.so"),
        ("linux", "aarch64", "linux-aarch64", "libcrt.so"),
        ("darwin", "arm64", "macos-arm64", "libcrt.dylib"),
        ("darwin", "x86_64", "macos-x86_64", "libcrt.dylib"),
        ("win32", "AMD64", "win-amd64", "crt.dll"),
    ],
)
def test_the_library_of_each_system_is_found(
    elsewhere: types.ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    platform: str,
    machine: str,
    folder: str,
    name: str,
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("sysconfig.get_platform", lambda: "win-amd64")
    there = importlib.reload(elsewhere)
    _installed(there, tmp_path / "data")
    library = tmp_path / "data" / "lib" / folder / name
    library.parent.mkdir(parents=True)
    library.touch()
    assert there.host_library() == library
    assert ("-fPIC" in there.SHARED_FLAGS) == (platform != "win32")
    assert ("-mcpu=native" in there.NATIVE_FLAGS) == (machine in ("aarch64", "arm64"))


@pytest.mark.parametrize(
    ("platform", "place"),
    [
        ("linux", "cache/pybuild-crt"),
        ("darwin", "cache/pybuild-crt"),
        ("win32", "local/pybuild-crt"),
    ],
)
def test_what_is_compiled_is_kept_where_the_system_keeps_such_things(
    elsewhere: types.ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    platform: str,
    place: str,
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    there = importlib.reload(elsewhere)
    _installed(there, tmp_path / "data")
    assert there.cache_folder() == tmp_path / place
    if platform == "darwin":
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert there.cache_folder() == tmp_path / "home/Library/Caches/pybuild-crt"


def test_an_unknown_system_compiles_its_own_library(
    elsewhere: types.ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As an installed wheel on a machine for which it has none."""
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    there = importlib.reload(elsewhere)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "crt").symlink_to(ROOT / "crt")
    _installed(there, tmp_path / "data")
    if not there.host_compiler():
        pytest.skip("no C compiler")
    library = there.host_library()
    assert library.is_relative_to(tmp_path / "cache")
    assert ctypes.CDLL(str(library)).crt_graph_run is not None
    there.host_library.cache_clear()
    monkeypatch.setattr(there, "host_compiler", lambda: ())
    with pytest.raises(BuildError) as refused:
        there.host_library()
    assert "no library of crt for linux-riscv64" in str(refused.value)
    assert "pip install ziglang" in str(refused.value)


def test_windows_takes_gcc_or_zig(
    elsewhere: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """clang of Microsoft's makes libraries that export nothing by themselves."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delenv("CC", raising=False)
    there = importlib.reload(elsewhere)
    monkeypatch.setattr("shutil.which", lambda name: name if name == "clang" else None)
    assert there.host_compiler() == (sys.executable, "-m", "ziglang", "cc")


# ---- the console ----------------------------------------------------------


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_console_that_knows_few_characters(encoding: str, tmp_path: Path) -> None:
    """Names of a model that it lacks do not end the command."""
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4])
        for name in ("größe", "数")
    )
    node = helper.make_node("Abs", ["größe"], ["数"], "数の絶対値")
    model = tmp_path / "model.onnx"
    graph = helper.make_graph([node], "数", [x], [y])
    model.write_bytes(helper.make_model(graph).SerializeToString())
    done = subprocess.run(
        [sys.executable, "-m", "pybuild.cli", "inspect", str(model)],
        env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(encoding)
    assert "\\u6570" in done.stdout.decode(encoding)


def test_an_error_on_such_a_console(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "pybuild.cli", "inspect", str(tmp_path / "größe_数")],
        env=env, capture_output=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert b"gr\\xf6\\xdfe_\\u6570" in done.stderr


# ---- lines ----------------------------------------------------------------


def test_a_serial_line_waits_without_select(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which on Windows takes sockets only."""
    require_module("serial")
    own, other = os.openpty()
    line = SerialLine("test", os.ttyname(other), 115200)
    os.set_blocking(own, False)
    try:
        # pyserial's own is another module's; on Windows it has none
        monkeypatch.setattr("pybuild.rpc.line.select", None)
        assert line.read(0.01) == b""
        os.write(own, b"\x00\xffabc")
        assert line.read(5) == b"\x00\xffabc"
        line.write(b"xyz")
        assert os.read(own, 10) == b"xyz"
    finally:
        line.close()
        for end in (own, other):
            os.close(end)


def test_qemu_reaches_its_line_on_windows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where Python has no sockets that are files."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        patch.delattr(socket, "AF_UNIX")
        here, address = _listening(tmp_path)
    with here:
        kind, host, port = address.split(":")
        assert (kind, host) == ("tcp", "127.0.0.1")
        there = socket.create_connection((host, int(port)))
        line = SocketLine("test", here.accept()[0])
        there.sendall(b"abc")
        assert line.read(5) == b"abc"
        line.close()
        there.close()
