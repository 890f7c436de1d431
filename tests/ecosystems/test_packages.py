"""What is asked of packages, refused, archived and made again; and what holds in every
build that takes all files of a folder.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.options.packages import ECOSYSTEMS
from tests.conftest import ROOT, model_path
from tests.ecosystems.conftest import kws
from tests.ecosystems.use import SAID, TWO, TWO_SAY, said
from tests.graphs.networks import keyword_spotting
from tests.toolchains import STRICT, require

DIGITS = ROOT / "examples" / "digits"
MODEL = pybuild.load(DIGITS / "digits_int8.tflite")
FLOAT = pybuild.load(DIGITS / "digits_f32.onnx")
LIBRARY = MODEL.build(name="digits")
NAMES = ("crt", "digits", "floats", "kws")


def held(folder: Path) -> dict[str, str]:
    """Path -> SHA-256 of all files."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def shell(*words: object) -> int:
    return main(["build", str(DIGITS / "digits_int8.tflite"), *map(str, words)])


# ---- what is written --------------------------------------------------------------

MAIN = {
    "arduino": "library.properties", "platformio": "library.json",
    "esp-idf": "idf_component.yml", "zephyr": "zephyr/module.yml",
    "cmsis-pack": "pybuild.digits.pdsc", "cmake": "CMakeLists.txt",
    "meson": "meson.build", "make": "Makefile",
}  # fmt: skip


def test_all_or_some(tmp_path: Path) -> None:
    """What is asked for is there, and nothing of others; the runtime is the same."""
    runtimes = set()
    for name in (*ECOSYSTEMS, "all", "make,arduino"):
        out = tmp_path / name
        LIBRARY.write_packages(out, package=name)
        wanted = set(ECOSYSTEMS) if name == "all" else set(name.split(","))
        there = {n for n, file in MAIN.items() if (out / "digits" / file).is_file()}
        if wanted == {"esp-idf"}:
            wanted = {"esp-idf", "cmake"}  # one file for both
        assert there == wanted, name
        runtimes.add(str(held(out / "crt")))
    assert len(runtimes) == 1


def test_the_command_and_python_write_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--name", "digits", "--package", "all", "--licence", "MIT", "--url"]
    assert shell("-o", tmp_path / "a", *words, "https://example.org/x") == 0
    said_so = capsys.readouterr().out
    wrote, *_ = said_so.rpartition("sum    ")
    assert wrote.endswith(f"wrote {tmp_path}/a/digits\nwrote {tmp_path}/a/crt\n")
    url = "https://example.org/x"
    LIBRARY.write_packages(tmp_path / "b", package="all", licence="MIT", url=url)
    assert held(tmp_path / "a") == held(tmp_path / "b")


def test_the_project_file_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all models at the top; trees of several models lie in one folder."""
    for name in ("digits_int8.tflite", "digits_f32.onnx"):
        shutil.copy(f"{DIGITS}/{name}", tmp_path)
    (tmp_path / "crt.toml").write_text(
        'package = ["cmake", "make"]\nlicence = "MIT"\n'
        '[models.a]\nfile = "digits_int8.tflite"\nout = "lib"\n'
        '[models.b]\nfile = "digits_f32.onnx"\nout = "lib"\n'
    )
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 0
    names = ("a/a.mk", "b/b.mk", "crt/crt.mk")
    assert all((tmp_path / "lib" / name).is_file() for name in names)
    assert "MIT" in (tmp_path / "lib/a/LICENSE").read_text()


def test_a_package_is_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LIBRARY.write_packages(tmp_path, package="all", version="2.0.0")
    words = ["rebuild", str(tmp_path / "digits"), "--from", MODEL.path]
    assert main(words) == 0 and "equal" in capsys.readouterr().out
    (tmp_path / "digits/library.json").write_text("{}")
    assert main([*words, "--check"]) == 1
    assert "differs  library.json (changed by hand)" in capsys.readouterr().out


def test_kws_is_mlperf_tiny_s(packages: Path) -> None:
    """Where its file is; elsewhere the packages have a net of the same layers."""
    real = model_path("kws_int8.tflite")
    facts = json.loads((packages / "kws" / "report.json").read_text())
    digest = hashlib.sha256(real.read_bytes()).hexdigest()
    assert digest in json.dumps(facts) and kws().path == str(real)


def test_a_made_net_has_its_layers() -> None:
    """And so as many steps and values as the real one, and weights but for a few."""
    made = keyword_spotting().model().build(name="kws")
    real = pybuild.load(model_path("kws_int8.tflite")).build(name="kws")
    figures = [
        (len(one.plan.steps), one.report.ram.arena, one.report.flash.weights // 1000)
        for one in (made, real)
    ]
    assert figures[0] == figures[1]


# ---- what is refused --------------------------------------------------------------

REFUSED = {
    "package": "package: 'bazel' is not known",
    "version": "--package-version: '1.0' is not a version. Hint: like 1.0.0",
    "licence": "--licence: 'my licence' is not a licence of SPDX. Hint: like MIT",
    "url": "--url: 'example.org' is not a URL",
    "description": "--description: 'a\\nb' is not one line of text",
    "author": "--author: has 101 characters; a package has 100 at most",
    "maker": "--author: 'Arduino fans' begins with Arduino, which its own",
}
WRONG = {
    "package": "bazel", "version": "1.0", "licence": "my licence",
    "url": "example.org", "description": "a\nb", "author": "a" * 101,
    "maker": "Arduino fans",
}  # fmt: skip


@pytest.mark.parametrize("key", REFUSED)
def test_what_no_ecosystem_takes(tmp_path: Path, key: str) -> None:
    given = "author" if key == "maker" else key
    with pytest.raises(BuildError) as told:
        LIBRARY.write_packages(tmp_path / "o", **{"package": "all", given: WRONG[key]})
    assert REFUSED[key] in str(told.value) and not (tmp_path / "o").exists()


@pytest.mark.parametrize("name", ["crt", "arduino_net", "_net", "n" * 51])
def test_names_that_are_no_packages(tmp_path: Path, name: str) -> None:
    with pytest.raises(BuildError, match="--name: "):
        MODEL.build(name=name).write_packages(tmp_path / "o", package="make")
    assert not (tmp_path / "o").exists()


def test_options_that_do_not_go_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell("-o", tmp_path / "o", "--archive") == 64
    assert "--archive: needs --package. Hint: --package NAME" in capsys.readouterr().err
    words = ["--package", "make", "--emit", "obj", "--target", "cortex-m4"]
    assert shell("-o", tmp_path / "o", "--name", "d", *words) == 64
    text = "--emit: d.o is for one core; packages are sources"
    assert text in capsys.readouterr().err and not (tmp_path / "o").exists()
    with pytest.raises(BuildError, match="package: is missing"):
        LIBRARY.write_packages(tmp_path / "o")


def test_a_folder_of_the_user_s_stays(tmp_path: Path) -> None:
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "mine.c").write_text("int mine;")
    with pytest.raises(BuildError, match="not from a build of"):
        LIBRARY.write_packages(tmp_path, package="make")
    assert not (tmp_path / "crt").exists()


def test_runtimes_of_other_builds(tmp_path: Path) -> None:
    """A newer one stays; one of another ABI is told, and nothing is written."""
    LIBRARY.write_packages(tmp_path, package="make")
    report = tmp_path / "crt" / "report.json"
    facts = json.loads(report.read_text())
    report.write_text(json.dumps({**facts, "version": "99.0.0"}))
    LIBRARY.write_packages(tmp_path, package="all")
    assert json.loads(report.read_text())["version"] == "99.0.0"
    report.write_text(json.dumps({**facts, "version": "0.0.1"}))
    LIBRARY.write_packages(tmp_path, package="all")
    assert json.loads(report.read_text()) == facts
    report.write_text(json.dumps({**facts, "abi": 1}))
    before = held(tmp_path)
    with pytest.raises(BuildError, match="CRT_ABI 1, and this build's is"):
        LIBRARY.write_packages(tmp_path, package="make")
    assert held(tmp_path) == before
    LIBRARY.write_packages(tmp_path, package="make", force=True)
    assert json.loads(report.read_text()) == facts


# ---- archives ---------------------------------------------------------------------


def test_archives_hold_the_folder(tmp_path: Path) -> None:
    """Each with the root that its ecosystem expects; the same bytes each time."""
    LIBRARY.write_packages(tmp_path / "a", package="all")
    LIBRARY.write_packages(tmp_path / "b", package="all", archive=True)
    made = held(tmp_path / "b")
    version = json.loads((tmp_path / "a/crt/report.json").read_text())["version"]
    for name, number in (("digits", "1.0.0"), ("crt", version)):
        files = held(tmp_path / "a" / name).keys() - {"extras/files.sha256"}
        roots = {
            f"{name}-{number}.zip": f"{name}/",
            f"pybuild.{name}.{number}.pack": "",
            f"{name}_{number}.tgz": "",
            f"{name}-{number}.tar.gz": f"{name}-{number}/",
        }
        assert roots.keys() <= made.keys()
        for archive, root in roots.items():
            path = tmp_path / "b" / archive
            if path.suffix in (".zip", ".pack"):
                with zipfile.ZipFile(path) as held_by:
                    assert held_by.testzip() is None
                    found = held_by.namelist()
            else:
                assert gzip.decompress(path.read_bytes())
                with tarfile.open(path) as packed:
                    found = packed.getnames()
            assert {root + file for file in files} == set(found)
    LIBRARY.write_packages(tmp_path / "b", package="all", archive=True)
    assert held(tmp_path / "b") == made
    with pytest.raises(BuildError, match="holds something else"):
        again = FLOAT.build(name="digits")
        again.write_packages(tmp_path / "b", package="make", archive=True)
    assert held(tmp_path / "b") == made


# ---- builds that take whatever they find -------------------------------------------


def test_every_file_beside_a_main_of_the_users(packages: Path, tmp_path: Path) -> None:
    """As IDEs do: examples define no main, and nothing is defined twice."""
    own = tmp_path / "main.c"
    own.write_text(TWO)
    sources = sorted(packages.rglob("*.c"))
    paths = [f"-I{packages / name / 'src'}" for name in NAMES]
    plain = tmp_path / "plain.c"
    plain.write_text("int main(void) { return 0; }\n")
    words = [require("gcc"), *STRICT, "-O0", *paths]
    said([*words, plain, *sources, "-o", tmp_path / "plain"])
    library = [
        path for path in sources if "src" in path.relative_to(packages).parts[:2]
    ]
    said([*words, "-DCRT_WITH_SELFTEST", own, *library, "-o", tmp_path / "two"])
    assert said([tmp_path / "two"]) == TWO_SAY


def test_no_main_outside_examples(packages: Path) -> None:
    for path in packages.rglob("*"):
        inside = {"examples", "samples"} & set(path.parts)
        if path.suffix in (".c", ".h") and not inside:
            text = path.read_text()
            assert "int main(" not in text and "app_main" not in text, path


FPU = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")


def test_floats_are_exact_without_a_flag(packages: Path, tmp_path: Path) -> None:
    """Arduino compiles for -std=gnu11: no product and sum is one instruction there."""
    compiler, reader = require("arm-none-eabi-gcc"), require("arm-none-eabi-objdump")
    source = packages / "floats" / "src" / "floats.c"
    copy = shutil.copytree(packages / "crt" / "src", tmp_path / "src")

    def code() -> str:
        paths = (f"-I{copy}", f"-I{source.parent}")
        words = [compiler, *FPU, "-std=gnu11", "-O2", *paths, "-c", source]
        said([*words, "-o", tmp_path / "a.o"])
        return said([reader, "-d", tmp_path / "a.o"])

    assert "vmul.f32" in code() and "vfma" not in code()
    intrin = copy / "crt" / "intrin.h"
    intrin.write_text(intrin.read_text().replace("#pragma GCC optimize", "//"))
    assert "vfma" in code()


def test_several_networks_in_one_package(tmp_path: Path) -> None:
    """An image is one package; its example tells of each network."""
    image = pybuild.build_image({"a": MODEL, "b": FLOAT}, name="both")
    image.write_packages(tmp_path / "out", package="all")
    require("make")
    words = ["make", "-s", "-C", tmp_path / "out" / "both", f"BUILD={tmp_path / 'b'}"]
    told = said([*words, "CFLAGS=-O0", "test"])
    assert told == SAID.replace("digits", "a") + SAID.replace("digits", "b")
    sketch = (tmp_path / "out/both/examples/selftest/selftest.ino").read_text()
    assert 'tell("a", a_selftest(&all.a));' in sketch
