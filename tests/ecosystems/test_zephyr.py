"""Packages as modules of Zephyr: their YAML, their Kconfig, and their CMake with a
find_package(Zephyr) that stands in for Zephyr's own (tests/ecosystems/zephyr).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from pykwalify.core import Core
from pykwalify.errors import SchemaError

from tests.ecosystems.kconfig import settings
from tests.ecosystems.use import (
    SAID,
    SCORES,
    STUBS,
    TWO,
    TWO_SAY,
    of,
    page_files,
    said,
)
from tests.toolchains import ROOT, require

ZEPHYR = STUBS / "zephyr"
BASE = {"ZEPHYR_BASE": str(ZEPHYR)}
NAMES = ("crt", "digits", "floats", "kws")
LESS = "CONFIG_CRT_HOOK=n\nCONFIG_CRT_NAMES=n\n"
SAMPLE = "samples/selftest"
# of Zephyr itself, that prj.conf names
OWN = 'config STDOUT_CONSOLE\n\tbool\n\tprompt "stdout"\n'


def _valid(path: Path, schema: str) -> dict[str, object]:
    found = Core(source_file=str(path), schema_files=[str(ZEPHYR / schema)])
    found.validate(raise_exception=True)
    return dict(yaml.safe_load(path.read_text()))


def test_what_the_module_says(packages: Path, tmp_path: Path) -> None:
    """Files it names are there; it depends on the runtime, once for all networks."""
    for name, needs in {**{key: ["crt"] for key in NAMES[1:]}, "crt": []}.items():
        module = packages / name
        facts = _valid(module / "zephyr/module.yml", "module.schema.yaml")
        build = facts["build"]
        assert isinstance(build, dict)
        assert facts["name"] == name and build.get("depends", []) == needs
        assert (module / build["cmake"] / "CMakeLists.txt").is_file()
        assert (module / build["kconfig"]).is_file()
        for sample in facts.get("samples", []):  # type: ignore[attr-defined]
            assert (module / sample / "sample.yaml").is_file()
    wrong = tmp_path / "module.yml"
    wrong.write_text("name: x\nbuild:\n  cmake: [zephyr]\n")
    with pytest.raises(SchemaError):
        _valid(wrong, "module.schema.yaml")


@pytest.mark.parametrize("name", ["digits", "kws"])
def test_what_twister_looks_for(packages: Path, name: str) -> None:
    """sample.yaml matches what the sample prints."""
    facts = _valid(packages / name / SAMPLE / "sample.yaml", "sample.schema.yaml")
    common = facts["common"]
    assert isinstance(common, dict)
    for regex in common["harness_config"]["regex"]:
        assert re.search(regex, of(name, SAID))


def _build(project: Path, packages: Path, chosen: str) -> Path:
    own = project / "Kconfig.zephyr"
    own.write_text(OWN)
    modules = [packages / name / "zephyr/Kconfig" for name in NAMES]
    config = settings([own, *modules], chosen, project / "dotconfig.cmake")
    build = project / "b"
    words = ["-S", project, "-B", build, f"-DDOTCONFIG={config}"]
    said([require("cmake"), *words], env=BASE)
    said(["cmake", "--build", build, "-j2"])
    return build


def test_the_sample_runs(packages: Path, tmp_path: Path) -> None:
    place = shutil.copytree(packages, tmp_path / "modules")
    sample = place / "digits" / SAMPLE
    build = _build(sample, place, (sample / "prj.conf").read_text())
    assert said([build / "app"]) == SAID + SCORES


def test_the_tutorial(packages: Path, tmp_path: Path) -> None:
    """docs/tutorial-zephyr.md: its application says what the page says."""
    place = shutil.copytree(packages, tmp_path / "modules")
    told = page_files(ROOT / "docs" / "tutorial-zephyr.md", tmp_path)
    app = tmp_path / "app"
    build = _build(app, place, (app / "prj.conf").read_text())
    assert said([build / "app"]) == told


@pytest.mark.parametrize(
    ("first", "more"), [("digits", ""), ("kws", ""), ("digits", LESS)]
)
def test_two_networks_share_one_runtime(
    packages: Path, tmp_path: Path, first: str, more: str
) -> None:
    """Libraries are linked whole there: nothing is twice in them."""
    names = ("crt", first, "floats")
    modules = " ".join(f'"{packages}/{name}"' for name in names)
    (tmp_path / "main.c").write_text(of(first, TWO))
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\n"
        f"list(APPEND ZEPHYR_EXTRA_MODULES {modules})\n"
        "find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})\nproject(two C)\n"
        "target_sources(app PRIVATE main.c)\n"
    )
    chosen = [f"CONFIG_CRT_MODEL_{n.upper()}{end}=y" for n in names[1:]
              for end in ("", "_SELFTEST")]  # fmt: skip
    build = _build(tmp_path, packages, "\n".join([*chosen, more]))
    assert said([build / "app"]) == of(first, TWO_SAY)
    hooked = "crt_graph_set_hook" in said([require("nm"), build / "app"])
    assert hooked == (not more)
