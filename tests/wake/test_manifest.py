"""Manifests and nets that are no wake words: every fault is named, with its file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pybuild import GraphBuilder
from pybuild.ecosystems.words import Word
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph
from pybuild.wake import build_wake_words
from pybuild.wake.manifest import read_manifest
from pybuild.wake.nets import rows_of_nets
from tests.wake.nets import manifest, streaming_net, write_nets

HINT = "Hint: a manifest of micro wake word, version 2"
GOOD = manifest("Hello", 0.9, 5)


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name != key}


WRONG: dict[str, tuple[Any, list[str]]] = {
    "text": ("{", ["net.json:1: "]),
    "a list": ([], [f"net.json: is a list, not a table. {HINT}"]),
    "version 1": (
        GOOD | {"version": 1, "type": "other"},
        [f"net.json: type is 'other', not 'micro'. {HINT}",
         f"net.json: version is 1, not 2. {HINT}"],
    ),
    "no word": (_without("wake_word"), ["wake_word"]),
    "no numbers": (GOOD | {"micro": {}}, ["probability_cutoff", "sliding_window_size",
                                          "feature_step_size"]),
    "a text": (manifest("Hello", "0.9", 5),  # type: ignore[arg-type]
               ["net.json: micro.probability_cutoff is '0.9', not a number"]),
    "out of range": (
        manifest("Hello", 1.1, 256, feature_step_size=31),
        ["net.json: micro.probability_cutoff is 1.1. Hint: a probability, from 0 to 1",
         "net.json: micro.sliding_window_size is 256. Hint: 1 to 255 steps",
         "net.json: micro.feature_step_size is 31. Hint: 1 to 30 milliseconds"],
    ),
    "nothing": (manifest("Hello", -0.1, 0, feature_step_size=0),
                ["cutoff is -0.1", "size is 0.", "step_size is 0."]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_manifest(case: str, tmp_path: Path) -> None:
    told, messages = WRONG[case]
    text = told if isinstance(told, str) else json.dumps(told)
    (tmp_path / "net.json").write_text(text)
    with pytest.raises(BuildError) as error:
        read_manifest(tmp_path / "net.tflite", "net")
    for message in messages:
        assert message in str(error.value)


def test_what_a_manifest_says(tmp_path: Path) -> None:
    (tmp_path / "net.json").write_text(json.dumps(GOOD))
    found = read_manifest(tmp_path / "net.tflite", "hello")
    assert found.step == 10 and not found.is_vad
    assert found.word == Word("hello", "Hello", 229, 5)


def test_a_manifest_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    said = "net.json: is not there; it says when the word of net.tflite is heard. "
    with pytest.raises(BuildError, match=re.escape(said + HINT)):
        read_manifest(tmp_path / "net.tflite", "net")
    with pytest.raises(BuildError, match=r"folder\.json: cannot be read"):
        read_manifest(tmp_path / "folder.tflite", "net")


def _net(name: str, shape: tuple[int, ...], kind: str = "int8", ends: int = 1) -> Graph:
    b = GraphBuilder(name)
    x = b.input("x", shape, kind, (0.1, 0))
    for i in range(ends):
        y = b.op("reshape", x, shape=(x.size,))
        b.output(y, f"y{i}")
    return b.build()


def test_nets_that_hear_something_else() -> None:
    nets = {
        "bands": _net("bands", (1, 3, 39)),
        "kind": _net("kind", (1, 3, 40), "int16"),
        "ends": _net("ends", (1, 3, 40), ends=2),
    }
    with pytest.raises(BuildError) as error:
        rows_of_nets(nets, 40)
    said = str(error.value)
    assert "input 'x' is int8[1, 3, 39]. Hint: int8[1, rows, 40]: rows of 40" in said
    assert "input 'x' is int16[1, 3, 40]" in said
    assert "has 1 inputs and 2 outputs. Hint: a wake word has one of each" in said
    assert "output 'y0' is int8[117]. Hint: uint8[1, 1], a probability" in said


def _files(folder: Path, **said: tuple[str, int, int]) -> dict[str, Path]:
    """name -> phrase, rows of a step, milliseconds of a row."""
    found = {}
    for name, (phrase, rows, step) in said.items():
        found[name] = folder / f"{name}.tflite"
        found[name].write_bytes(streaming_net(1, rows))
        text = json.dumps(manifest(phrase, 0.5, 5, feature_step_size=step))
        found[name].with_suffix(".json").write_text(text)
    return found


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"a": ("A", 3, 10), "b": ("B", 2, 10)},
         "nets take different numbers of rows in a step: a 3, b 2. Hint: one package"),
        ({"a": ("A", 3, 10), "b": ("B", 3, 20)},
         "nets want rows at different steps: a 10 ms, b 20 ms. Hint: one package"),
        ({"a": ("A", 3, 10), "v": ("vad", 3, 10), "w": ("vad", 3, 10)},
         "two nets are for voice"),
        ({"v": ("vad", 3, 10)}, "there is no wake word"),
    ],
)  # fmt: skip
def test_nets_that_do_not_fit_together(
    said: dict[str, tuple[str, int, int]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(BuildError, match=message):
        build_wake_words(_files(tmp_path, **said))


def test_too_many_nets(tmp_path: Path) -> None:
    net = write_nets(tmp_path, ("hello",))["hello"]
    with pytest.raises(BuildError, match="33 nets; a component has at most 32"):
        build_wake_words({f"n{i}": net for i in range(33)})


def test_other_steps(tmp_path: Path) -> None:
    """Rows of 20 ms, one in a step: one row is silent before the first whole window."""
    made = build_wake_words(_files(tmp_path, a=("A", 1, 20)))
    said = made.words
    assert (said.hop, said.silent, said.rows, said.bands) == (320, 1, 1, 40)
    assert "#define ROWS 1u" in made.sources()["a_words.c"]
