"""The generated C: clean with every compiler, C++ can include it, models link
together, nothing allocates, the same bytes everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pybuild.install import crt_include, crt_sources
from pybuild.library import Library
from tests import toolchains
from tests.graphs.networks import classifier
from tests.toolchains import require, runtime

WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic"]
CLEAN = [*WARNINGS, "-Werror", "-ffp-contract=off", "-DCRT_WITH_SELFTEST"]
SANITIZE = {
    "gcc": toolchains.SANITIZE["gcc"],
    # traps need no run-time library, which Debian packs apart
    "clang": ["-fsanitize=undefined,integer-divide-by-zero", "-fsanitize-trap=all"],
}
KINDS = ["int8", "float32"]


def shell(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sanitized(folder: Path, compiler: str = "gcc", *more: str) -> str:
    """What the example of a tree says, compiled as strictly as can be."""
    flags = [*CLEAN, *SANITIZE[compiler], *more]
    flags += [f"-I{folder}", f"-I{folder}/crt/include"]
    sources, program = sorted(folder.rglob("*.c")), folder / "example.out"
    shell(require(compiler), *flags, *sources, "-o", program)
    return shell(program)


def tree(folder: Path, name: str, kind: str, **options: object) -> Library:
    return classifier(name, kind).model().build(folder, name=name, **options)


# pairs of a compiler, a kind and an optimisation in each run, all of them in all tests
WAYS = [
    pytest.param(compiler, kind, optimise,
                 marks=pytest.mark.sweep if (n + m + k) % 2 else ())
    for n, compiler in enumerate(SANITIZE)
    for m, kind in enumerate(KINDS)
    for k, optimise in enumerate(("balanced", "speed"))
]  # fmt: skip


@pytest.mark.parametrize(("compiler", "kind", "optimise"), WAYS)
def test_clean_and_sanitized(
    tmp_path: Path, compiler: str, kind: str, optimise: str
) -> None:
    require(compiler)
    tree(tmp_path / "t", "tiny", kind, optimise=optimise)
    assert "tiny: self-test: no error" in sanitized(tmp_path / "t", compiler, "-O1")


@pytest.mark.parametrize("build", ["make", "cmake", "meson"])
def test_build_files_make_an_example_that_runs(tmp_path: Path, build: str) -> None:
    require(build)
    folder = tmp_path / "t"
    tree(folder, "tiny", "int8")
    if build == "make":
        out = shell("make", "-s", "run", cwd=folder)
    elif build == "cmake":
        shell("cmake", "-S", folder, "-B", tmp_path / "b")
        shell("cmake", "--build", tmp_path / "b")
        out = shell(tmp_path / "b" / "tiny_example")
    else:
        meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
        shell(*meson, "setup", tmp_path / "b", folder)
        shell(*meson, "compile", "-C", tmp_path / "b")
        out = shell(tmp_path / "b" / "tiny_example")
    assert "self-test: no error" in out and "scores:" in out


def test_two_models_in_one_image_and_a_cpp_user(tmp_path: Path) -> None:
    require("g++")
    for name, kind in (("first", "int8"), ("second", "float32")):
        (tmp_path / name).mkdir()
        for file, text in tree(tmp_path / f"{name}t", name, kind).sources().items():
            (tmp_path / file).write_text(text)
    user = tmp_path / "user.cpp"
    user.write_text(USER)
    c_files = [*tmp_path.glob("first*.c"), *tmp_path.glob("second*.c")]
    objects = [*runtime("gcc", *WARNINGS, "-O1")]
    for path in c_files:
        made = tmp_path / f"{path.stem}.o"
        shell("gcc", *WARNINGS, "-O1", "-c", path, f"-I{crt_include()}", "-o", made)
        objects.append(made)
    include = [f"-I{crt_include()}", f"-I{tmp_path}"]
    flags = ["-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    shell("g++", *flags, *include, user, *objects, "-o", tmp_path / "both")
    assert shell(tmp_path / "both").split() == ["0", "0"]


USER = """
#include "first.h"
#include "second.h"
#include <cstdio>
alignas(16) static uint8_t one[FIRST_ARENA_BYTES];
alignas(16) static uint8_t two[SECOND_ARENA_BYTES];
int main()
{
    first a;
    second b;
    first_memory am = FIRST_MEMORY(one);
    second_memory bm = SECOND_MEMORY(two);
    first_init(&a, &am);
    second_init(&b, &bm);
    for (unsigned i = 0; i < FIRST_IMAGE_LEN; i++)
        first_image(&a)[i] = 1;
    for (unsigned i = 0; i < SECOND_IMAGE_LEN; i++)
        second_image(&b)[i] = 1.0f;
    std::printf("%d ", first_run(&a));
    std::printf("%d", second_run(&b));
    return 0;
}
"""


def test_nothing_allocates_or_prints(tmp_path: Path) -> None:
    require("gcc")
    library = tree(tmp_path / "t", "tiny", "int8")
    known = {"memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"}
    flags = ("-std=c99", "-O2")
    sources = sorted((tmp_path / "t").glob("*.c"))
    shell("gcc", *flags, f"-I{crt_include()}", "-c", *sources, cwd=tmp_path)
    objects = [*sorted(tmp_path.glob("*.o")), *runtime("gcc", *flags)]
    assert len(objects) == len(sources) + len(crt_sources())
    wanted = shell("nm", "-A", "-u", *objects).splitlines()
    assert len(wanted) > len(objects)
    for line in wanted:
        name = line.split()[-1]
        assert name in known or name.startswith((f"{library.name}_", "crt_")), line


BUILD = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.graphs.networks import classifier
for kind in ("int8", "float32"):
    classifier("tiny", kind).model().build(sys.argv[2] + "/" + kind)
"""


def test_same_bytes_from_another_path_locale_and_hash_seed(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    for place, seed, locale in (("a", "1", "C"), ("b/c/d", "77", "C.UTF-8")):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        settings = {"PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": f"UTC{seed}"}
        done = subprocess.run(
            [sys.executable, "-c", BUILD, str(root), str(folder)],
            cwd=folder,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    first, second = tmp_path / "a", tmp_path / "b/c/d"
    files = sorted(p.relative_to(first) for p in first.rglob("*") if p.is_file())
    assert len(files) > 20
    for file in files:
        text = (first / file).read_bytes()
        assert text == (second / file).read_bytes(), file
        assert str(tmp_path).encode() not in text


def test_the_header_says_what_has_to_be_bound() -> None:
    model = classifier("tiny").model()
    plain = model.build(name="tiny").sources()["tiny.h"]
    assert "UNBOUND" not in plain and "lazy" not in plain
    lazy = model.build(name="tiny", lazy=["image"]).sources()["tiny.h"]
    assert "CRT_ERR_UNBOUND: bind parameters and lazy tensors first */" in lazy
    text = " ".join(lazy.replace("\n *", " ").split())
    assert "/* Input 'image': lazy, it has no memory of its own. Bind it; till" in text
    assert "tiny_set_image fails: CRT_ERR_LAZY. */" in text
    loaded = model.build(name="tiny", params="replaceable").sources()["tiny.h"]
    assert "CRT_ERR_UNBOUND" in loaded and "lazy, it" not in loaded


def test_the_report_is_in_the_tree(tmp_path: Path) -> None:
    library = tree(tmp_path / "t", "tiny", "int8")
    report = json.loads((tmp_path / "t/report.json").read_text())
    assert report["name"] == "tiny"
    assert report["ram"]["arena"] == library.plan.arena_bytes
    assert {"name", "op", "macs", "out_bytes"} <= set(report["layers"][0])
