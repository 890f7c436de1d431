"""Crates of Rust of every kind of build, and a program of them all."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import pybuild
from pybuild.graph_builder import GraphBuilder
from pybuild.image import Image, build_image
from pybuild.library import Library
from tests.ecosystems.use import STUBS
from tests.toolchains import ROOT

DIGITS = ROOT / "examples" / "digits"
INT8, FLOAT32 = DIGITS / "digits_int8.tflite", DIGITS / "digits_f32.onnx"
KEYWORD = ROOT / "examples" / "keyword"
GRU = ROOT / "examples" / "streams" / "gru.onnx"
# what cargo need not do for tests
FAST = {
    "CARGO_INCREMENTAL": "0", "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_PROFILE_TEST_DEBUG": "0",
}  # fmt: skip
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


def make_crates(out: Path) -> None:
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
