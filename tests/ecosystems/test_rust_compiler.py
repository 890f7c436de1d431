"""Crates of Rust: the C compiler that build.rs calls, what is refused, and the page."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.graph_builder import GraphBuilder
from pybuild.image import build_image
from tests.conftest import ROOT, made_once
from tests.ecosystems.crates import FAST, FLOAT32, INT8
from tests.snippets import snippets
from tests.toolchains import STRICT, completed, require

PAGE = ROOT / "docs" / "rust.md"
HOST = "x86_64-unknown-linux-gnu"
M4 = "thumbv7em-none-eabihf"


@pytest.fixture(scope="session")
def scripts(crates: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with build scripts: digits, and m4 of a crate for a Cortex-M4."""

    def make(out: Path) -> None:
        out.mkdir()
        library = pybuild.load(INT8).build(name="m4", target="cortex-m4")
        library.write_packages(out / "lib", package="rust")
        for name, source in (("digits", crates), ("m4", out / "lib")):
            file = source / name / "build.rs"
            completed(["rustc", "--edition=2021", "-o", out / f"{name}.out", file])

    return made_once(tmp_path_factory, "scripts", make)


def _script(
    scripts: Path, crates: Path, name: str, target: str, out: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    source = (scripts / "lib" if name == "m4" else crates) / name
    left = re.compile(r"(CC|AR|CFLAGS)(_.*)?|(HOST|TARGET)_(CC|AR|CFLAGS)|CRATE_CC.*")
    env = {key: v for key, v in os.environ.items() if not left.fullmatch(key)}
    env |= {
        "OUT_DIR": str(out), "CARGO_MANIFEST_DIR": str(source), "TARGET": target,
        "HOST": HOST, "OPT_LEVEL": "s", "DEBUG": "false",
        "DEP_CRT_INCLUDE": str(crates / "crt/src"), **more,
    }  # fmt: skip
    script = scripts / f"{name}.out"
    return subprocess.run([script], env=env, capture_output=True, text=True)


def _attributes(archive: Path) -> str:
    return completed(["readelf", "-hA", archive]).stdout


def test_the_compiler_is_that_of_the_target(
    crates: Path, scripts: Path, tmp_path: Path
) -> None:
    require("arm-none-eabi-gcc")
    strict = " ".join(STRICT)
    made = _script(scripts, crates, "digits", M4, tmp_path, CFLAGS=strict)
    assert made.returncode == 0, made.stderr
    assert "cargo:rustc-link-lib=static=crt_model_digits" in made.stdout
    told = _attributes(tmp_path / "libcrt_model_digits.a")
    assert told.count("Machine:                           ARM") == 1
    assert "Tag_ABI_VFP_args: VFP registers" in told and "v7E-M" in told
    made = _script(scripts, crates, "m4", "thumbv7em-none-eabi", tmp_path)
    assert made.returncode == 0, made.stderr
    told = _attributes(tmp_path / "libcrt_model_m4.a")
    assert "Tag_FP_arch: VFPv4-D16" in told and "VFP_args" not in told
    made = _script(scripts, crates, "m4", "thumbv6m-none-eabi", tmp_path)
    assert "crt_model_m4 is made for a core that thumbv6m-none-eabi does not have" in (
        made.stderr
    )


def test_risc_v(crates: Path, scripts: Path, tmp_path: Path) -> None:
    require("riscv64-unknown-elf-gcc")
    made = _script(scripts, crates, "digits", "riscv32imc-unknown-none-elf", tmp_path)
    assert made.returncode == 0, made.stderr
    told = completed(["readelf", "-h", tmp_path / "libcrt_model_digits.a"]).stdout
    assert "RISC-V" in told and "ELF32" in told


# variables, and what the compiler is then called with: the first that is there wins
NAMED: tuple[tuple[Mapping[str, str], str], ...] = (
    ({"CC": "one"}, "one -std=c99"),
    ({"CC": "one", "TARGET_CC": "two"}, "two -std=c99"),
    ({"TARGET_CC": "two", "CC_thumbv7em_none_eabihf": "three"}, "three -std=c99"),
    ({"CC_thumbv7em_none_eabihf": "three", f"CC_{M4}": "four -x"}, "four -x -std"),
    ({"CC": "one", "HOST_CC": "host"}, "one -std=c99"),
    ({"CC": "one", "CFLAGS": "-a -b"}, "/src -a -b -c"),
    ({"CC": "one", "CFLAGS": "-a", "TARGET_CFLAGS": "-c9"}, "/src -c9 -c"),
    ({"CC": "one", "CRATE_CC_NO_DEFAULTS": "1"}, "one -std=c99 -DCRT_WITH_SELFTEST -I"),
    ({"CC": "my-clang"}, f"--target={M4}"),
)


@pytest.mark.parametrize(("variables", "called"), NAMED)
def test_variables_name_the_compiler(
    crates: Path, scripts: Path, tmp_path: Path, variables: dict[str, str], called: str
) -> None:
    made = _script(scripts, crates, "digits", M4, tmp_path, **variables, PATH="")
    told = made.stderr.replace('"', "")
    assert made.returncode != 0 and called in told, told
    assert "(the variable CC names another)" in told
    for name in ("CC", f"CC_{M4}", "TARGET_CFLAGS", "AR"):
        assert name == "AR" or f"cargo:rerun-if-env-changed={name}\n" in made.stdout


def test_targets_without_a_compiler(
    crates: Path, scripts: Path, tmp_path: Path
) -> None:
    made = _script(scripts, crates, "digits", "wasm32-unknown-unknown", tmp_path)
    assert "set CC_wasm32_unknown_unknown" in made.stderr
    made = _script(scripts, crates, "digits", "avr-none", tmp_path, CC="cc")
    assert "an int of C has 16 bits there" in made.stderr


# ---- what is refused, and the page ------------------------------------------------


def test_what_rust_has_no_words_for(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["build", str(FLOAT32), "--package", "rust", "-o", "out", "--name"]
    assert main([*words, "match", "--params", "replaceable", "--api", "tvm"]) == 64
    told = capsys.readouterr().err
    assert "--name: 'match' is a word of Rust" in told and "'match_net'" in told
    assert "parameters that are bound at run time have no functions in Rust" in told
    assert "--package rust: has no functions of --api tvm" in told
    floats = pybuild.load(FLOAT32)
    models = {"a": pybuild.load(INT8), "b": floats}
    image = build_image(models, name="c", exclusive="a,b", lazy=["scores"])
    with pytest.raises(BuildError, match="lazy output of a network that shares"):
        image.write_packages("out", package="rust")


def test_names_are_in_comments_alone(tmp_path: Path) -> None:
    """Whatever characters a file has in them."""
    b = GraphBuilder("net")
    x = b.input("x`\nbad! {\r\u202e", (1, 4), "float32")
    b.output(b.op("add", x, x), "y\nbad!")
    pybuild.build(b.build(), name="net").write_packages(tmp_path, package="rust")
    text = (tmp_path / "net/src/lib.rs").read_bytes().decode()
    assert "bad!" in text and "\r" not in text and "\u202e" not in text
    for line in text.split("\n"):
        assert "bad!" not in line or line.lstrip().startswith("/// "), line


def test_the_page(tmp_path: Path) -> None:
    """docs/rust.md: its files and its commands, in their order."""
    require("cargo")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    scripts = Path(sys.executable).parent
    env = {**FAST, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    env["CARGO_TARGET_DIR"] = str(tmp_path / "target")
    told = ""
    for block in (b for b in snippets(ROOT, PAGE) if b.said("run by")):
        if block.file is not None:
            (tmp_path / block.file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.file).write_text(block.text)
            continue
        for line in block.text.splitlines():
            told += completed(shlex.split(line), tmp_path, env).stdout
    first, second = re.findall(r"^scores: (.*)$", told, re.MULTILINE)
    image = np.full((1, 8, 8, 1), 20, np.int8)
    net = pybuild.load(INT8).build().host()
    net.run(image=image)
    assert first == second == str(net.get_output("scores").reshape(-1).tolist())
    assert (tmp_path / "crates/both/Cargo.toml").is_file()


def test_the_project_file_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(INT8, tmp_path / "net.tflite")
    text = 'package = "rust"\n[models.net]\nfile = "net.tflite"\nout = "crates"\n'
    (tmp_path / "crt.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 0
    for name in ("net", "crt"):
        assert (tmp_path / "crates" / name / "Cargo.toml").is_file()
