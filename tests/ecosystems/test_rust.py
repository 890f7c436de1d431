"""Crates of Rust: cargo builds and tests them without a network, one program has those
of every kind of build, and programs that read lost results do not compile."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.library import Library
from tests.ecosystems.crates import FAST, builds
from tests.toolchains import completed, require


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
    env = {**FAST, "CARGO_TARGET_DIR": str(target.parent)}
    told = completed([*words, crates / "digits/Cargo.toml"], None, env).stdout
    assert "gives_the_stored_answer ... ok" in told
    assert re.search(r"lib.rs - \(line \d+\) - compile fail ... ok", told)
    assert told.count(" ... ok") == 3


def test_two_networks_of_one_name(crates: Path, target: Path) -> None:
    """The linker says so: it would otherwise take the one for the other."""
    words = ["cargo", "build", "--offline", "-p", "clash"]
    env = {**os.environ, **FAST, "CARGO_TARGET_DIR": str(target.parent)}
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
