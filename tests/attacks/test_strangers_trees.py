"""A tree from elsewhere: nothing of it is written, read or printed but what was asked
for. Links, devices, pipes, names that are paths, names that a terminal would obey."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError, Problem
from pybuild.files.names import is_inside, is_plain
from pybuild.files.read import read_bytes
from pybuild.html.page import page
from pybuild.package.folder import write_file, write_tree
from pybuild.package.grid import as_html, grid
from pybuild.text.escaped import escaped, escaped_lines
from tests.toolchains import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
Capture = pytest.CaptureFixture[str]
linked = pytest.mark.skipif(os.name == "nt", reason="links and pipes of POSIX")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own = tmp_path / "own"
    own.mkdir()
    shutil.copy(DIGITS, own / "m.tflite")
    monkeypatch.chdir(own)
    return own


@pytest.fixture
def tree(here: Path) -> Path:
    pybuild.load("m.tflite").build("out", name="d")
    return here / "out"


def _said(tree: Path, change: Any) -> None:
    facts = json.loads((tree / "report.json").read_text())
    change(facts)
    (tree / "report.json").write_text(json.dumps(facts))


# ---- what a report names -------------------------------------------------------


@pytest.mark.parametrize("place", ["{}", "../victim", "out/../../victim", "a\\b", ".."])
def test_a_report_names_no_path(
    place: str, tree: Path, tmp_path: Path, capsys: Capture
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    name = place.format(victim)
    _said(tree, lambda facts: facts["provenance"]["model"].update(file=name))
    before = sorted(tmp_path.rglob("*"))
    assert main(["rebuild", "out", "--from", "m.tflite", "--check"]) == 2
    err = capsys.readouterr().err
    assert "report.json: provenance.model.file is" in err and err.count("\n") == 1
    assert "not the name of a file" in err
    assert victim.read_text() == "mine" and sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f["provenance"].update(build=[]), "provenance.build is a list"),
        (lambda f: f["provenance"]["build"].update(ram_limt=1), "is not an option"),
        (lambda f: f["provenance"]["build"].update(plan=5), "provenance.build.plan"),
        (lambda f: f["provenance"]["load"].update(front="/x"), "load.front"),
        (lambda f: f.update(name="../x"), "name is '../x'"),
    ],
)
def test_a_report_is_checked_key_by_key(
    change: Any, said: str, tree: Path, capsys: Capture
) -> None:
    _said(tree, change)
    assert main(["rebuild", "out", "--check"]) == 2
    assert said in capsys.readouterr().err


def test_all_that_is_wrong_with_a_report(tree: Path, capsys: Capture) -> None:
    def change(facts: Any) -> None:
        facts["provenance"]["build"].update(plan=5, names=[], input={})

    _said(tree, change)
    assert main(["rebuild", "out", "--check", "--json"]) == 2
    found = json.loads(capsys.readouterr().out)["error"]
    assert [one["where"].rpartition(".")[2] for one in found] == [
        "names", "plan", "input",
    ]  # fmt: skip
    _said(tree, lambda facts: facts.update(ram=[], kernels=7))
    assert main(["report", "out", "-o", "x.html"]) == 2
    err = capsys.readouterr().err
    assert "ram is a list" in err and "kernels is 7, not a list" in err
    assert not Path("x.html").exists()


def test_a_list_names_no_path(tree: Path, tmp_path: Path, capsys: Capture) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    listed = tree / "crt" / "files.sha256"
    digest = pybuild.package.folder.digest_of(b"mine")
    listed.write_text(listed.read_text() + f"{digest}  ../../victim\n")
    assert main(["rebuild", "out", "--check"]) == 2
    assert "is not a line of such a list" in capsys.readouterr().err
    assert main(["build", "m.tflite", "-o", "out", "--name", "d", "--force"]) == 0
    assert victim.read_text() == "mine"


# ---- writing -------------------------------------------------------------------


@linked
def test_writing_follows_no_link(tmp_path: Path) -> None:
    victim, target = tmp_path / "victim", tmp_path / "out.c"
    victim.write_text("mine")
    (tmp_path / "out.c.part").symlink_to(victim)
    target.symlink_to(victim)
    write_file(target, b"ours")
    assert victim.read_text() == "mine"
    assert target.read_text() == "ours" and not target.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "out.c", "out.c.part", "victim",
    ]  # fmt: skip
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask


@linked
def test_a_tree_is_written_behind_no_link(tree: Path, tmp_path: Path) -> None:
    far = tmp_path / "far"
    shutil.move(tree / "crt", far)
    (tree / "crt").symlink_to(far)
    before = {p: p.read_bytes() for p in far.rglob("*") if p.is_file()}
    for force in (False, True):
        with pytest.raises(BuildError, match="behind a link that leads out"):
            write_tree(tree, {"crt/src/run.c": "ours"}, "d", force)
    assert {p: p.read_bytes() for p in far.rglob("*") if p.is_file()} == before


def test_nothing_is_left_of_what_could_not_be_written(tmp_path: Path) -> None:
    def broken() -> Any:
        yield b"some"
        raise OSError(28, "No space left on device")

    (tmp_path / "x").write_text("before")
    with pytest.raises(OSError, match="No space"):
        pybuild.files.write.write_bytes(tmp_path / "x", broken())
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("x", "before")]


@pytest.mark.parametrize(
    ("line", "verb"),
    [
        ("out = '../far'", "build"),
        ("out = '{}/far'", "build"),
        ("evidence = '../far'", "build"),
        ("out = 'link/far'", "build"),
        ("quantise = '../calibration.npz'", "inspect"),
        ("report.out = '../far.html'", "report"),
    ],
)
@linked
def test_paths_of_a_project_file_stay_in_its_folder(
    line: str, verb: str, here: Path, tmp_path: Path, capsys: Capture
) -> None:
    (here / "link").symlink_to(tmp_path)
    text = f"[models.d]\nfile = 'm.tflite'\n{line.format(tmp_path)}\n"
    Path("crt.toml").write_text(text)
    before = sorted(tmp_path.rglob("*"))
    assert main([verb]) == 64
    err = capsys.readouterr().err
    assert err.startswith("crt.toml:3: ") and "leads out of the file's folder" in err
    assert "on the command line, or --outside" in err
    assert sorted(tmp_path.rglob("*")) == before


def test_the_command_line_may_say_otherwise(here: Path, tmp_path: Path) -> None:
    Path("crt.toml").write_text("[models.d]\nfile = 'm.tflite'\nout = '../far'\n")
    assert main(["build", "--outside"]) == 0
    assert (tmp_path / "far" / "d.c").is_file()
    Path("crt.toml").write_text("[models.d]\nfile = 'm.tflite'\n")
    assert main(["build", "-o", "../near"]) == 0
    assert (tmp_path / "near" / "d.c").is_file()


def test_names_and_addresses_of_a_project_file(here: Path, capsys: Capture) -> None:
    Path("crt.toml").write_text("[models.'../../x']\nfile = 'm.tflite'\n")
    assert main(["build"]) == 64
    assert "'../../x' cannot be a name" in capsys.readouterr().err
    text = "[models.d]\nfile = 'm.tflite'\n[sweeps.s]\ntarget = ['generic']\n"
    Path("crt.toml").write_text(text + "[sweep]\nscheduler = 'tcp://1.2.3.4:5'\n")
    assert main(["sweep"]) == 64
    assert "runs code here, so no file says it" in capsys.readouterr().err
    Path("crt.toml").write_text(text + "[check]\noutside = true\n")
    assert main(["inspect"]) == 64
    assert "unknown key 'outside'" in capsys.readouterr().err


# ---- reading -------------------------------------------------------------------


@linked
@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "x"],
        ["inspect", "m.tflite", "--front", "x.toml"],
        ["inspect", "a", "--project", "x.toml"],
        ["params", "list", "x"],
        ["run", "m.tflite", "--data", "x"],
    ],
)
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_devices_and_pipes_are_not_read(
    kind: str, words: list[str], here: Path, capsys: Capture
) -> None:
    name = Path(words[-1])
    if kind == "pipe":
        os.mkfifo(name)
    else:
        name.symlink_to("/dev/zero")
    assert main(words) in (2, 64)
    err = capsys.readouterr().err
    assert f"is a {kind}, no regular file" in err and err.count("\n") == 1


def test_sizes_are_limited(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(100))
    assert len(read_bytes(tmp_path / "x", 100)) == 100
    with pytest.raises(OSError, match="has 100 bytes, at most 99 are read"):
        read_bytes(tmp_path / "x", 99)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(BuildError, match="at most 2,147,483,648 are read"):
        pybuild.load(tmp_path / "large")


def test_names() -> None:
    good = ["a", "a.b", "Ü", "-", "a b", "..."]
    bad = ["", ".", "..", "a/b", "/a", "a\\b", "C:", "C:a", "a\0", "a" * 256, "\x1b[2J",
           None, 5, "\ud800"]  # fmt: skip
    assert [n for n in (*good, *bad) if is_plain(n)] == good
    assert is_inside("a/b/c") and not any(
        map(is_inside, ["a//b", "/a", "a/../b", "a/", "", 5, "./a"])
    )


# ---- printing ------------------------------------------------------------------

EVIL = "a\x1b[2J\x07\x9b31m\u202eb\nkws: equal\u2028\u2066"
PLAIN = r"a\x1b[2J\x07\x9b31m\u202eb\nkws: equal\u2028\u2066"


def _obeyed(text: str) -> list[str]:
    return [c for c in text if c != "\n" and (not c.isprintable() or c in "\u2028")]


def test_names_are_printed_without_what_a_terminal_obeys(
    here: Path, capsys: Capture
) -> None:
    made = pybuild.GraphBuilder("net")
    x = made.input(EVIL, (1, 4))
    made.output(made.op("tanh", x, name=EVIL + "n"), EVIL + "y")
    model = pybuild.load(pybuild.frontends.graphjson.dump(made.build())[0])
    library = model.build(name="n")
    for long in (False, True):
        shown = pybuild.package.page.report_page(library.report, long)
        assert not _obeyed(as_html(shown))
        pybuild.cli.output.tables.show(shown)
    out, err = capsys.readouterr()
    assert out and not _obeyed(out + err)
    assert not _obeyed(library.to_html().partition("<style>")[0])


def test_messages_are_one_line() -> None:
    assert str(Problem(EVIL, "is wrong", EVIL)) == f"{PLAIN}: is wrong. Hint: {PLAIN}"
    assert escaped_lines("a\n\tb\r\x1b") == "a\n\tb\\r\\x1b"
    assert escaped("Grüße, 日本, 👩") == "Grüße, 日本, 👩"


def test_tables_and_pages_say_what_they_hide() -> None:
    found = grid(EVIL, [(EVIL, "text")], [[EVIL]])
    assert found.title == found.columns[0][0] == found.rows[0][0] == PLAIN
    made = page(EVIL, {"name": "\u202ex", EVIL: ["\x9b"]})
    assert "\\u202e" not in made.partition('id="data">')[2].replace("\\\\u202e", "")
    assert not _obeyed(made.partition("<style>")[0])


def test_errors_of_the_command_are_escaped(here: Path, capsys: Capture) -> None:
    text = '[models.d]\nfile = "m.tflite"\n"\\u001b[2J\\u202e" = 1'
    Path("crt.toml").write_text(text)
    assert main(["build"]) == 64
    err = capsys.readouterr().err
    assert r"\x1b[2J\u202e" in err and not _obeyed(err)
