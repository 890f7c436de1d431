"""What a build writes and removes: its own, whole or not at all, and a reason where it
cannot. The same from Python as from the command line."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError, BuildWarning
from pybuild.package.folder import LIST, write_beside, write_file, write_tree

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
MODEL = pybuild.load(DIGITS / "digits_int8.tflite")
FLOAT = pybuild.load(DIGITS / "digits_f32.onnx")


def from_python(folder: Path, name: str = "k", force: bool = False) -> None:
    MODEL.build(folder, name=name, force=force)


def image(folder: Path, name: str = "k", force: bool = False) -> None:
    pybuild.build_image({"a": MODEL, "b": FLOAT}, folder, name=name, force=force)


def from_shell(folder: Path, name: str = "k", force: bool = False) -> None:
    words = ["build", MODEL.path, "-o", str(folder), "--name", name]
    if main([*words, *["--force"] * force]):
        raise BuildError("", "refused")


BUILDS = [from_python, image, from_shell]


def held(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(p.relative_to(folder)): p.read_text() for p in files}


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("file", ["Makefile", "example/main.c", "notes.txt"])
def test_no_file_of_the_user_is_touched(
    build: Callable[..., None], file: str, tmp_path: Path
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("mine")
    with pytest.raises(BuildError):
        build(tmp_path)
    assert held(tmp_path) == {file: "mine"}


def test_the_reason_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BuildError) as error:
        from_python(tmp_path)
    what = f"{tmp_path}: contains files that are not from a build of 'k'"
    assert str(error.value) == f"{what}. Hint: another folder, or --force"


@pytest.mark.parametrize("build", BUILDS)
def test_force_writes_beside_other_files(
    build: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    build(tmp_path, force=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "k.h").is_file()


@pytest.mark.parametrize("build", BUILDS)
def test_a_build_is_written_over_itself(
    build: Callable[..., None], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    build(out)
    first = held(out)
    build(out)
    assert held(out) == first
    with pytest.raises(BuildError):
        build(out, name="other")
    assert held(out) == first


@pytest.mark.parametrize("build", [from_python, image])
def test_a_changed_file_that_is_replaced_is_named(
    build: Callable[..., None], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    build(tmp_path)
    whole = held(tmp_path)
    changed = tmp_path / "k.h"
    changed.write_text("/* mine */\n" + changed.read_text())
    assert not recwarn.list
    build(tmp_path)
    what = f"{changed}: was changed since an earlier build wrote it; this build has "
    assert [str(one.message) for one in recwarn.list] == [f"{what}replaced it"]
    assert held(tmp_path) == whole
    build(tmp_path)
    assert len(recwarn.list) == 1


def test_the_list_is_that_of_sha256sum(tmp_path: Path) -> None:
    out = tmp_path / "out"
    from_python(out)
    lines = (out / LIST).read_text().splitlines()
    listed = {line.split("  ", 1)[1] for line in lines}
    assert listed == held(out).keys() - {LIST}
    done = subprocess.run(["sha256sum", "-c", "--quiet", LIST], cwd=out)
    assert done.returncode == 0


def test_what_a_build_left_is_removed_unless_it_was_changed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = {"report.json": '{"name": "k"}', "a.c": "a", "b.c": "b", "deep/c.c": "c"}
    write_tree(out, first, "k")
    (out / "b.c").write_text("mine now")
    (out / "mine.c").write_text("mine")
    with pytest.warns(BuildWarning) as said:
        write_tree(out, {"report.json": '{"name": "k"}'}, "k")
    what = "was written by an earlier build and changed since; it stays"
    assert [str(one.message) for one in said] == [f"{out / 'b.c'}: {what}"]
    kept = held(out).keys() - {"report.json", LIST}
    assert kept == {"b.c", "mine.c"}


def test_a_file_of_the_user_where_a_later_build_has_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    from_python(out)
    (out / "k_params.c").write_text("mine")
    with pytest.raises(
        BuildError, match=r"k_params\.c: exists and is not from a build"
    ):
        MODEL.build(out, name="k", params="replaceable")
    assert (out / "k_params.c").read_text() == "mine"
    assert "params" not in (out / "k.h").read_text()


def test_a_list_of_somebody_else_removes_nothing_outside(tmp_path: Path) -> None:
    out, outside = tmp_path / "out", tmp_path / "precious"
    write_tree(out, {"report.json": '{"name": "k"}'}, "k")
    outside.write_text("precious")
    digest = hashlib.sha256(b"precious").hexdigest()
    (out / LIST).write_text(f"{digest}  ../precious\n{digest}  {outside}\n")
    write_tree(out, {"report.json": '{"name": "k"}'}, "k")
    assert outside.read_text() == "precious"


def test_files_of_a_board_are_put_over_no_others(tmp_path: Path) -> None:
    assert main(["boards", "microbit", "-o", str(tmp_path), "--toolchain", "gcc"]) == 0
    first = held(tmp_path)
    assert main(["boards", "microbit", "-o", str(tmp_path), "--toolchain", "gcc"]) == 0
    file = sorted(first)[0]
    (tmp_path / file).write_text("mine")
    with pytest.raises(BuildError, match="holds something else"):
        write_beside(tmp_path, {file: "theirs", "more.c": ""})
    assert held(tmp_path) == {**first, file: "mine"}


# ---- what cannot be written -----------------------------------------------------


@pytest.mark.parametrize("build", [from_python, image])
def test_a_file_in_place_of_a_folder(
    build: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    for force in (False, True):
        with pytest.raises(BuildError, match=f"^{tmp_path / 'file'}: "):
            build(tmp_path / "file" / "out", force=force)
    with pytest.raises(BuildError, match="file: is a file"):
        build(tmp_path / "file")


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    out = tmp_path / "new" / "out"
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BuildError) as error:
        from_python(out)
    first = f"{out / 'CMakeLists.txt'}: cannot be written: no space left on device"
    assert str(error.value) == first  # its own name, not that of a temporary folder
    assert held(tmp_path) == {}


def test_every_writer_says_file_and_reason(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    bad = tmp_path / "taken" / "x"
    library = MODEL.build(name="k")
    writers: list[Callable[[], object]] = [
        lambda: library.export_library(bad),
        lambda: library.export_library(f"{bad}/"),
        lambda: pybuild.runtime.save_param_dict_to_file({}, bad),
        lambda: write_file(bad, "x"),
    ]
    for write in writers:
        with pytest.raises(BuildError, match=r"taken: is a file\. Hint: give a folder"):
            write()
    (tmp_path / "folder").mkdir()
    with pytest.raises(BuildError, match="folder: cannot be written: is a directory"):
        write_file(tmp_path / "folder", "x")


def test_verbs_say_file_and_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, verb, option in (
        ("x.npz", "run", "-o"),
        ("x.svg", "inspect", "--ram-curve"),
    ):
        bad = tmp_path / name
        bad.mkdir()
        assert main([verb, MODEL.path, option, str(bad)]) == 2
        said = f"{bad}: cannot be written: is a directory"
        assert capsys.readouterr().err.splitlines() == [said]


def test_writing_warns_of_nothing_else(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_python(tmp_path / "out")
        from_python(tmp_path / "out")


@pytest.mark.parametrize("build", BUILDS)
def test_files_of_another_build_that_stay_are_told(
    build: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from_python(tmp_path, name="kws")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        build(tmp_path, name="other", force=True)
        first = [str(w.message) for w in told] + [capsys.readouterr().err]
        told.clear()
        build(tmp_path, name="other")
        again = [str(w.message) for w in told] + [capsys.readouterr().err]
    assert "files of build 'kws' stay there: kws.c, kws.h, " in "".join(first)
    assert "stay" not in "".join(again) and (tmp_path / "kws.c").exists()
