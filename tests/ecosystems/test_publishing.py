"""Packages as registries want them: rules of those whose validators are not to be had
here, from their documentation; cargo's own packing; the commands of the page."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT, made_once
from tests.ecosystems.crates import FAST
from tests.snippets import snippets
from tests.toolchains import completed, require

PAGE = ROOT / "docs" / "publishing.md"
BLOCKS = [block for block in snippets(ROOT, PAGE) if block.said("run by")]
# https://crates.io/category_slugs
CATEGORIES = ("embedded", "no-std")


def _run(line: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    target = str(folder / "target")
    words = shlex.split(line)
    env = {**FAST, "PATH": path, "CARGO_TARGET_DIR": target}
    return completed(words, folder, env).stdout


def _make(out: Path) -> None:
    out.mkdir()
    (out / "examples").symlink_to(ROOT / "examples")
    _run(BLOCKS[0].text, out)


@pytest.fixture(scope="session")
def publish(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first command of the page writes."""
    return made_once(tmp_path_factory, "publish", _make)


@pytest.mark.parametrize("name", ["digits", "crt"])
def test_arduino_library_manager(publish: Path, name: str) -> None:
    """The rules of arduino.github.io/arduino-lint for a submission."""
    library = publish / "publish" / name
    lines = (library / "library.properties").read_text().splitlines()
    facts = dict(line.split("=", 1) for line in lines)
    files = [path for path in library.rglob("*") if path.is_file()]
    assert facts["name"] == name and len(name) <= 63
    assert re.fullmatch(r"\d+\.\d+\.\d+", facts["version"])
    for key in ("author", "maintainer", "sentence", "paragraph", "url"):
        assert facts[key].strip(), key
        assert not facts[key].lower().startswith("arduino"), key
    assert facts["category"] == "Data Processing" and facts["architectures"] == "*"
    assert (library / "src" / facts["includes"]).is_file()
    assert not any(path.is_symlink() for path in library.rglob("*"))
    assert not any(path.suffix == ".exe" for path in files)
    assert not any(path.name == ".development" for path in files)
    assert not (library / "examples" / "example").exists()
    for sketch in library.rglob("*.ino"):
        assert sketch.stem == sketch.parent.name
    assert (library / "README.md").is_file() and (library / "LICENSE").is_file()
    assert name == "crt" or "invalid" not in facts["url"]


@pytest.mark.parametrize("name", ["digits", "crt"])
def test_crates_io(publish: Path, name: str) -> None:
    """doc.rust-lang.org/cargo/reference/manifest.html, "publishing"."""
    folder = publish / "publish" / name
    facts = tomllib.loads((folder / "Cargo.toml").read_text())
    package = facts["package"]
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", package["name"])
    assert package["description"]
    assert package["license"] == {"digits": "MIT", "crt": "Apache-2.0"}[name]
    assert len(package["keywords"]) <= 5
    for word in package["keywords"]:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_+-]{0,19}", word)
    assert set(package["categories"]) <= set(CATEGORIES)
    for needed in facts.get("dependencies", {}).values():
        assert needed["version"], "a path alone is refused"
    if name == "digits":
        assert package["authors"] == ["Ada Byron <ada@example.org>"]
        assert package["homepage"] == "https://example.org/digits"
    whole = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert whole < 10 << 20


def test_cargo_packs_them(publish: Path) -> None:
    require("cargo")
    first, second = BLOCKS[1].text.splitlines()
    listed = _run(first, publish).split()
    wanted = {"Cargo.toml", "build.rs", "src/lib.rs", "src/digits.c", "src/digits.h"}
    assert wanted <= set(listed) and "src/digits_rust.c" in listed
    _run(second, publish)
    assert [*publish.glob("target/package/crt-*.crate")]


def test_all_registries_of_the_page_are_there(publish: Path) -> None:
    """Each package has the file by which its registry knows it."""
    for file in ("library.properties", "library.json", "idf_component.yml",
                 "zephyr/module.yml", "Cargo.toml"):  # fmt: skip
        for name in ("digits", "crt"):
            assert (publish / "publish" / name / file).is_file(), file
