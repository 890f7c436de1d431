"""Packages as CMSIS-Packs: the .pdsc by a schema, each file and condition that it
names, and a project that takes components as its tools do.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import xmlschema

import pybuild
from tests.conftest import ROOT
from tests.ecosystems.use import FIRST, SAID, SCORES, STUBS, TWO, TWO_SAY, of, said
from tests.toolchains import require

MODEL = pybuild.load(ROOT / "examples" / "digits" / "digits_int8.tflite")
SCHEMA = STUBS / "cmsis" / "pdsc.xsd"
Part = tuple[str, str, str]


def _pdsc(folder: Path) -> ET.Element:
    found = list(folder.glob("*.pdsc"))
    assert len(found) == 1
    xmlschema.XMLSchema(SCHEMA).validate(found[0])
    root = ET.parse(found[0]).getroot()
    assert found[0].name == f"{root.findtext('vendor')}.{folder.name}.pdsc"
    return root


def _part(element: ET.Element) -> Part:
    return (
        element.get("Cclass", ""),
        element.get("Cgroup", ""),
        element.get("Csub", ""),
    )


@pytest.mark.parametrize("name", ["digits", "floats", "kws", "crt"])
def test_all_that_it_names_is_there(packages: Path, name: str) -> None:
    """And all C of the package in one component only; a condition is known and used."""
    root = _pdsc(packages / name)
    named = [file.get("name", "") for file in root.iter("file")]
    assert len(named) == len(set(named))
    for file in (*named, root.findtext("license", "")):
        assert (packages / name / file).exists(), file
    sources = {str(p.relative_to(packages / name)) for p in
               (packages / name / "src").rglob("*.c")}  # fmt: skip
    assert sources <= set(named)
    conditions = {each.get("id") for each in root.iter("condition")}
    used = {each.get("condition") for each in root.iter("component")} - {None}
    assert conditions == used


def test_the_schema_refuses(packages: Path, tmp_path: Path) -> None:
    text = next((packages / "digits").glob("*.pdsc")).read_text()
    for good, bad in (
        ('Cversion="1.2.0"', 'Cversion="1"'),
        ('Csub="digits self-test"', f'Csub="{33 * "x"}"'),
        ("<license>", "<licence>"),
    ):
        assert good in text
        (tmp_path / "x.pdsc").write_text(
            text.replace(good, bad).replace(
                "/license", "/" + bad[1:-1] if "<" in bad else "/license"
            )
        )
        with pytest.raises(xmlschema.XMLSchemaValidationError):
            xmlschema.XMLSchema(SCHEMA).validate(tmp_path / "x.pdsc")


def test_a_long_name_is_a_short_part(tmp_path: Path) -> None:
    """Csub has 32 characters; two names that begin alike are still two parts."""
    parts = set()
    for end in "ab":
        name = "wake_word_of_the_front_door_and_the_garage_2026_" + end
        MODEL.build(name=name).write_packages(tmp_path, package="cmsis-pack")
        root = _pdsc(tmp_path / name)
        components = {_part(each) for each in root.iter("component")}
        needed = {_part(each) for each in root.iter("require")}
        assert len(components) == 2 and len(needed & components) == 1
        parts |= components
    assert len(parts) == 4


def _built(packages: Path, chosen: list[str], main: Path, folder: Path) -> str:
    """What a program of some components prints; requirements come by themselves."""
    known = {
        _part(each): (packages / name, root, each)
        for name in ("crt", "digits", "floats", "kws")
        for root in [_pdsc(packages / name)]
        for each in root.iter("component")
    }
    todo = [part for part in known if part[2] in chosen]
    taken: list[Part] = []
    while todo:
        part = todo.pop()
        if part in taken:
            continue
        taken.append(part)
        _, root, element = known[part]
        for condition in root.iter("condition"):
            if condition.get("id") == element.get("condition"):
                todo += [_part(need) for need in condition]
    words: list[object] = [main, f"-I{folder}", f"-include{folder / 'Pre_Include.h'}"]
    macros = ""
    for place, _, element in map(known.__getitem__, taken):
        macros += element.findtext("Pre_Include_Global_h", "") + "\n"
        for file in element.iter("file"):
            path = place / file.get("name", "")
            if file.get("category") == "include":
                words.append(f"-I{path}")
            elif file.get("attr") == "config":
                (folder / path.name).write_text(path.read_text())
            elif file.get("category") == "source" and file.get("attr") is None:
                words.append(path)
    (folder / "Pre_Include.h").write_text(macros)
    program = folder / "program"
    said([require("gcc"), "-std=c99", "-Wall", "-Werror", *words, "-o", program])
    return said([program])


def test_the_template_runs(packages: Path, tmp_path: Path) -> None:
    """The self-test is a component; it brings the network, that the runtime."""
    main = packages / "digits/examples/program/src/main.c"
    assert _built(packages, ["digits self-test"], main, tmp_path) == SAID + SCORES


@pytest.mark.parametrize("first", FIRST)
def test_two_networks_share_one_runtime(
    packages: Path, tmp_path: Path, first: str
) -> None:
    main = tmp_path / "main.c"
    main.write_text(of(first, TWO))
    chosen = [f"{first} self-test", "floats self-test"]
    assert _built(packages, chosen, main, tmp_path) == of(first, TWO_SAY)


def test_packs_that_are_needed_are_those(packages: Path) -> None:
    runtime = _pdsc(packages / "crt")
    for name in ("digits", "floats", "kws"):
        need = next(_pdsc(packages / name).iter("packages"))[0]
        assert need.get("vendor") == runtime.findtext("vendor")
        release = next(runtime.iter("release"))
        assert need.get("version") == release.get("version")
