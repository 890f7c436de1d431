"""Crates of Rust: cargo builds and tests them without a network, one program has those
of every kind of build, and programs that read lost results do not compile."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.graph_builder import GraphBuilder
from pybuild.image import Image, build_image
from pybuild.library import Library
from tests.conftest import ROOT, made_once
from tests.ecosystems.use import STUBS
from tests.snippets import snippets
from tests.toolchains import STRICT, completed, require

DIGITS = ROOT / "examples" / "digits"
INT8, FLOAT32 = DIGITS / "digits_int8.tflite", DIGITS / "digits_f32.onnx"
KEYWORD = ROOT / "examples" / "keyword"
GRU = ROOT / "examples" / "streams" / "gru.onnx"
PAGE = ROOT / "docs" / "rust.md"
HOST = "x86_64-unknown-linux-gnu"
M4 = "thumbv7em-none-eabihf"
PROGRAM = """\
[package]
name = "user"
version = "0.1.0"
edition = "2021"

[dependencies]
"""


def _piped() -> Image:
    """Two models; an output of the first is the input of the second."""
    head, tail = GraphBuilder("head"), GraphBuilder("tail")
    x, y = head.input("type", (1, 4), "float32"), tail.input("self", (1, 4), "float32")
    head.output(head.op("add", x, x), "fn")
    tail.output(tail.op("add", y, y), "match")
    models = {"head": head.build(), "tail": tail.build()}
    return build_image(models, name="piped", connect=["head.fn=tail.self"])


@functools.cache
def builds() -> dict[str, Library | Image]:
    """A build for each kind of input, output and memory."""
    digits, floats = pybuild.load(INT8), pybuild.load(FLOAT32)
    front = pybuild.load(f"{KEYWORD / 'front.toml'}+{KEYWORD / 'keyword.onnx'}")
    made: dict[str, Library | Image] = {
        "digits": digits.build(name="digits"),
        "pair": build_image({"a": digits, "b": digits}, name="pair"),
        "turns": build_image({"c": digits, "d": floats}, name="turns", exclusive="c,d"),
        "again": build_image({"a": floats}, name="again"),
        "piped": _piped(),
        "lazy": floats.build(name="lazy", lazy=["image", "scores"], verify=True),
        "regions": floats.build(name="regions", regions=["near=1K:fast", "far=9K"]),
        "pushed": digits.build(name="pushed", push=["image"]),
        "gru": pybuild.load(GRU, state={"h": "h_next"}).build(name="gru"),
        "heard": front.build(name="heard"),
    }
    return made


def _make(out: Path) -> None:
    for made in builds().values():
        made.write_packages(out, package="rust", licence="MIT", author="Ada")
    names = sorted(path.name for path in out.iterdir())
    members = ["digits", "user", "clash"]
    (out / "Cargo.toml").write_text(f"[workspace]\nmembers = {members}\n")
    program = (STUBS / "rust" / "main.rs").read_text()
    _program(out / "user", [n for n in names if n != "again"], program)
    both = ("again", "pair")
    calls = [f"let _ = {n}::Models::new(&mut {n}::Arena::new());" for n in both]
    _program(out / "clash", both, f"fn main() {{ {' '.join(calls)} }}\n")


def _program(folder: Path, uses: Sequence[str], text: str) -> None:
    """A crate beside those that it uses."""
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.rs").write_text(text)
    lines = "".join(f'{name} = {{ path = "../{name}" }}\n' for name in uses)
    text = PROGRAM.replace("user", folder.name)
    (folder / "Cargo.toml").write_text(f"{text}{lines}")


@pytest.fixture(scope="session")
def crates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Crates of all builds(), and the crate of a program of them."""
    return made_once(tmp_path_factory, "crates", _make)


@pytest.fixture(scope="session")
def target(crates: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What cargo has made of them."""
    require("cargo")

    def make(out: Path) -> None:
        env = {"CARGO_TARGET_DIR": str(out)}
        completed(["cargo", "build", "-q", "--offline", "-p", "user"], crates, env)

    return made_once(tmp_path_factory, "rust-target", make) / "debug"


def numbers() -> Array:
    """What the program gives every network."""
    return ((np.arange(4000) * 37 + 11) % 256).astype(np.uint8).view(np.int8)


def said_by(text: str) -> dict[str, Array]:
    found = (line.split(": ", 1) for line in text.splitlines())
    return {name: np.array(eval(values)) for name, values in found}


def expected() -> dict[str, Array]:
    """The same of pybuild's own instances."""
    made = builds()
    ints = numbers()[:64].reshape(1, 8, 8, 1)
    floats = numbers()[:64].astype(np.float32) / 128

    def run(library: Library, **inputs: Array) -> Array:
        net = library.host()
        net.run(**inputs)
        return net.get_output("scores").reshape(-1)

    digits, lazy = made["digits"], made["lazy"]
    assert isinstance(digits, Library) and isinstance(lazy, Library)
    image = floats.reshape(made["regions"].tables.inputs[0].tensor.shape)
    of_ints = run(digits, image=ints)
    of_floats = run(made["regions"], image=image)
    gru = made["gru"].host()
    for _ in range(2):
        gru.run(frame=floats[:8].reshape(1, 1, 8))
    heard = made["heard"].host()
    few = heard.samples_wanted() - 1
    heard.push_samples(np.zeros(few, np.int16))
    heard.push_samples(numbers().astype(np.int16) * 64)
    return {
        "digits": of_ints, "pair": of_ints, "turn of c": of_ints, "pushed": of_ints,
        "turn of d": of_floats, "lazy": of_floats, "regions": of_floats,
        "head": np.array([-2.0, 4, -6, 8]), "tail": np.array([-4.0, 8, -12, 16]),
        "gru": gru.get_output("scores").reshape(-1),
        "heard": heard.get_output("scores").reshape(-1),
    }  # fmt: skip


def test_a_program_of_all(target: Path) -> None:
    found = said_by(completed([target / "user"]).stdout)
    want = expected()
    assert found.keys() == want.keys()
    for name, values in want.items():
        assert (found[name].astype(values.dtype) == values).all(), name


def test_the_crate_tests_itself(crates: Path, target: Path) -> None:
    """Its self-test, its example, and the example that must not compile."""
    words = ["cargo", "test", "--offline", "--manifest-path"]
    env = {"CARGO_TARGET_DIR": str(target.parent)}
    told = completed([*words, crates / "digits/Cargo.toml"], None, env).stdout
    assert "gives_the_stored_answer ... ok" in told
    assert re.search(r"lib.rs - \(line \d+\) - compile fail ... ok", told)
    assert told.count(" ... ok") == 3


def test_two_networks_of_one_name(crates: Path, target: Path) -> None:
    """The linker says so: it would otherwise take the one for the other."""
    words = ["cargo", "build", "--offline", "-p", "clash"]
    env = {**os.environ, "CARGO_TARGET_DIR": str(target.parent)}
    made = subprocess.run(words, cwd=crates, env=env, capture_output=True, text=True)
    assert made.returncode != 0
    assert re.search(r"(multiple|duplicate).*a_init", made.stderr), made.stderr


# ---- what must not compile --------------------------------------------------------

ONE = """\
fn main() -> Result<(), digits::Error> {{
    let image = [0; digits::IMAGE_LEN];
    let mut arena = digits::Arena::new();
    let mut model = digits::Model::new(&mut arena)?;
    {lines}
    Ok(())
}}
"""
TWO = """\
fn main() -> Result<(), turns::Error> {{
    let image = [0; 64];
    let floats = [0.0; 64];
    let mut arena = turns::Arena::new();
    let mut models = turns::Models::new(&mut arena)?;
    {lines}
    Ok(())
}}
"""
PAIR = """\
fn main() -> Result<(), pair::Error> {{
    let mut arena = pair::Arena::new();
    let models = pair::Models::new(&mut arena)?;
    let (mut a, mut b) = (models.a, models.b);
    {lines}
    Ok(())
}}
"""
# a program, the error of rustc, and the lines; with "//" before the last but one the
# program is right, so that nothing else in it is wrong
REFUSED = {
    "kept across a run": (ONE, "E0499", """\
model.set_image(&image)?;
let outputs = model.run()?;
model.run()?;
println!("{:?}", outputs.scores);"""),
    "kept across an input": (ONE, "E0499", """\
let outputs = model.run_with(digits::Inputs { image: &image })?;
model.set_image(&image)?;
println!("{:?}", outputs.scores);"""),
    "an input in place kept across a run": (ONE, "E0499", """\
let there = model.image()?;
model.run()?;
there[0] = 1;"""),
    "memory that moves away": (ONE, "E0505", """\
model.set_image(&image)?;
drop(arena);
model.run()?;"""),
    "a bound input that changes": (ONE, "E0506", """\
let mut own = image; model.bind_image(&own)?;
own[0] = 1;
model.run()?;"""),
    "a bound output that is read": (ONE, "E0502", """\
let mut scores = [0; 10]; model.bind_scores(&mut scores)?; model.set_image(&image)?;
println!("{:?}", scores);
model.run()?;"""),
    "one instance in two threads": (ONE, "E0277", """\
std::thread::scope(|s| {
s.spawn(|| model.save());
});""".replace("model.save()", "drop(&model)")),
    "a result across another's turn": (TWO, "E0499", """\
let mut a = models.c(); let first = a.run_with(turns::c::Inputs { image: &image })?;
models.d().set_image(&floats)?;
println!("{:?}", first.scores);"""),
    "a result as the input of one that takes turns": (TWO, "E0499", """\
let mut b = models.d(); let first = b.run_with(turns::d::Inputs { image: &floats })?;
println!("{}", models.c().run_with(turns::c::Inputs { image: &image })?.scores[0]);
println!("{:?}", first.scores);"""),
    "a result that another has as its input": (PAIR, "E0499", """\
let (x, y) = (&mut a, &mut b); let first = x.image()?; y.bind_image(first)?;
x.run()?;
y.run()?;"""),
}  # fmt: skip


def _compiled(
    target: Path, folder: Path, text: str
) -> subprocess.CompletedProcess[str]:
    (folder / "main.rs").write_text(text)
    words = ["rustc", "--edition=2021", "--emit=metadata", f"-L{target}/deps"]
    for name in ("digits", "turns", "pair"):
        (found,) = (target / "deps").glob(f"lib{name}-*.rmeta")
        words += ["--extern", f"{name}={found}"]
    words.append("main.rs")
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("name", REFUSED)
def test_lost_results_do_not_compile(target: Path, tmp_path: Path, name: str) -> None:
    require("rustc")
    frame, code, text = REFUSED[name]
    lines = text.split("\n")
    made = _compiled(target, tmp_path, frame.format(lines="\n    ".join(lines)))
    assert f"error[{code}]" in made.stderr and made.returncode != 0, made.stderr
    assert made.stderr.count("error[") == 1, made.stderr
    lines[-2] = f"// {lines[-2]}"
    made = _compiled(target, tmp_path, frame.format(lines="\n    ".join(lines)))
    assert made.returncode == 0, made.stderr


def test_it_needs_no_std(crates: Path, tmp_path: Path) -> None:
    """Libraries compile where the compiler finds core alone."""
    require("rustc")
    root = Path(completed(["rustc", "--print", "sysroot"]).stdout.strip())
    machine = re.search(r"host: (\S+)", completed(["rustc", "-vV"]).stdout)
    assert machine
    place = Path("lib/rustlib") / machine[1] / "lib"
    (tmp_path / place).mkdir(parents=True)
    for name in ("core", "compiler_builtins", "rustc_std_workspace_core"):
        for path in (root / place).glob(f"lib{name}-*"):
            (tmp_path / place / path.name).symlink_to(path)
    words = ["rustc", f"--sysroot={tmp_path}", "--edition=2021", "--crate-type=lib"]
    words += ["--emit=metadata", "-Dwarnings", "-L.", "--cap-lints=warn"]
    for name in ("crt", "digits", "turns", "heard", "lazy", "gru", "pushed"):
        file = crates / name / "src/lib.rs"
        completed([*words, f"--crate-name={name}", file], tmp_path)
        words += ["--extern=crt"] * (name == "crt")
    user = tmp_path / "user.rs"
    user.write_text("pub fn f() -> std::vec::Vec<u8> { std::vec![] }\n")
    made = subprocess.run([*words, user], cwd=tmp_path, capture_output=True, text=True)
    assert "can't find crate for `std`" in made.stderr


# ---- the C compiler ---------------------------------------------------------------


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


def test_the_page(tmp_path: Path) -> None:
    """docs/rust.md: its files and its commands, in their order."""
    require("cargo")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    scripts = Path(sys.executable).parent
    env = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
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
