"""The generated C for several devices: clean with every compiler, and it runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.devices.protected import HERE
from tests.graphs.networks import classifier
from tests.toolchains import ROOT, STRICT, absent, links, require, run

TABLE = {0: "generic", 1: "cortex-m4"}


@pytest.mark.parametrize("ends", [(0, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_tree_runs_on_a_device(
    compiler: str, ends: tuple[int, int], tmp_path: Path
) -> None:
    """ends: devices of input and output; those on the device are copied by the
    self-test and without an instance, and NAME.h says so."""
    require(compiler)
    place = {"depth": 1, "dense": 1, "input:image": ends[0], "output:scores": ends[1]}
    library = classifier("net").model().build(tmp_path, target=TABLE, place=place)
    assert library.tables.inputs[0].device == ends[0]
    assert library.tables.outputs[0].device == ends[1]
    header = (tmp_path / "net.h").read_text()
    assert len(re.findall(r"in the memory of\s+(?:\* )?device 1", header)) == sum(ends)
    sources = [p for p in tmp_path.rglob("*.c") if p.parent.name != "example"]
    include = ["-I", tmp_path, "-I", tmp_path / "crt/include"]
    for source in sources:
        flags = [*STRICT, "-DCRT_WITH_SELFTEST", "-ffp-contract=off", *include]
        run([compiler, *flags, "-c", source, "-o", tmp_path / f"{source.stem}.o"])
    objects = [tmp_path / f"{source.stem}.o" for source in sources]
    test = [HERE / "device.c", HERE / "main.c", "-pthread", "-o", tmp_path / "test"]
    run([compiler, "-std=gnu99", "-DCRT_WITH_SELFTEST", *include, *objects, *test])
    assert run([tmp_path / "test"]) == "no error\n"


@pytest.mark.parametrize("checks", ["thread", "address,undefined"])
def test_a_device_in_a_thread_under_sanitizers(checks: str, tmp_path: Path) -> None:
    gcc, sanitize = require("gcc"), ["-g", f"-fsanitize={checks}"]
    if not links(gcc, sanitize, tmp_path):
        absent(f"gcc has no -fsanitize={checks}")
    place = {"depth": 1, "dense": 1, "output:scores": 1}
    folder = tmp_path / "net"
    classifier("net").model().build(folder, target=TABLE, place=place)
    sources = [p for p in folder.rglob("*.c") if p.parent.name != "example"]
    flags = ["-DCRT_WITH_SELFTEST", "-I", folder, "-I", folder / "crt/include"]
    flags += [*sanitize, "-fno-sanitize-recover=all", "-pthread"]
    test = [HERE / "device.c", HERE / "main.c", "-o", tmp_path / "test"]
    run([gcc, "-std=gnu99", *flags, *sources, *test])
    assert run([tmp_path / "test"]) == "no error\n"


def test_the_page_shows_a_device_that_works(tmp_path: Path) -> None:
    gcc = require("gcc")
    page = (ROOT / "docs" / "devices.md").read_text()
    source = "".join(re.findall(r"```c\n(.*?)```", page, re.DOTALL))
    (tmp_path / "page.c").write_text(source)
    classifier("net").model().build(tmp_path / "net", target=TABLE, place={"dense": 1})
    sources = [p for p in tmp_path.rglob("*.c") if p.parent.name != "example"]
    include = ["-I", tmp_path / "net", "-I", tmp_path / "net/crt/include"]
    flags = [*STRICT, "-DCRT_WITH_SELFTEST", *include]
    run([gcc, *flags, *sources, "-o", tmp_path / "page"])
    run([tmp_path / "page"])


def test_the_example_does_all_with_the_cpu(tmp_path: Path) -> None:
    require("make")
    place = {"depth": 1, "output:scores": 1}
    classifier("net").model().build(tmp_path, target=TABLE, place=place)
    run(["make", "-C", tmp_path, "example/net"])
    said = run([tmp_path / "example" / "net"])
    assert "net: self-test: no error" in said and "scores is on device 1" in said
