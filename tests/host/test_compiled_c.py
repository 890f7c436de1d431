"""Generated C as a library of this machine: it holds all it needs, and what cannot be
loaded or kept is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

import pybuild
from pybuild import install
from pybuild.errors import BuildError
from pybuild.host.cc import compiled_library, loaded, shared_library
from tests.toolchains import ROOT

MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"
LOADS = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    return pybuild.load(MODEL).build(name="digits").sources()


def test_it_needs_no_library_of_ours_and_no_folder(sources: dict[str, str]) -> None:
    library, _folder = compiled_library("digits", sources)
    with library.open("rb") as file:
        (dynamic,) = (
            section
            for section in ELFFile(file).iter_sections()
            if isinstance(section, DynamicSection)
        )
        tags = [(tag.entry.d_tag, tag) for tag in dynamic.iter_tags()]
    needed = [tag.needed for kind, tag in tags if kind == "DT_NEEDED"]
    assert needed and all(name.startswith(("libc.", "libm.")) for name in needed)
    assert not {"DT_RPATH", "DT_RUNPATH"} & {kind for kind, _ in tags}


def test_it_is_loaded_by_a_process_without_crt(
    sources: dict[str, str], tmp_path: Path
) -> None:
    library = tmp_path / "elsewhere.so"
    library.write_bytes(shared_library("digits", sources))
    command = [sys.executable, "-c", LOADS, library]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    library = tmp_path / "digits.so"
    library.write_bytes(b"no library")
    with pytest.raises(BuildError, match=r"cannot be loaded: .*Hint: .*TMPDIR"):
        loaded("digits", library, None)


def test_without_a_place_to_keep_things_they_are_made_once_for_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(install, "is_checkout", lambda: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    made: list[Path] = []
    folders = [install.made_once(b"a content", made.append) for _ in range(2)]
    assert folders == [made[0], made[0]] and len(made) == 1
    assert not folders[0].is_relative_to(tmp_path)


def test_what_is_kept_is_made_once_for_each_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "is_checkout", lambda: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def make(folder: Path) -> None:
        (folder / "made").write_text("once")

    first, second = (install.made_once(b"one", make) for _ in range(2))
    assert first == second != install.made_once(b"other", make)
    assert [path.read_text() for path in tmp_path.glob("*/*/made")] == ["once"] * 2
    assert len(list((tmp_path / "pybuild-crt").iterdir())) == 2


def test_a_failure_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "is_checkout", lambda: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def make(folder: Path) -> None:
        (folder / "half").touch()
        raise BuildError("gcc", "cannot compile")

    with pytest.raises(BuildError):
        install.made_once(b"one", make)
    assert not list((tmp_path / "pybuild-crt").iterdir())
