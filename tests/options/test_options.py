"""The table of options: each is the same in Python, in words and in text."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import pybuild
from pybuild.cli import main
from pybuild.cli.parser import parsed, parser
from pybuild.errors import BuildError, fitting
from pybuild.model import Model
from pybuild.options import kinds
from pybuild.options.option import (
    keywords,
    of_words,
    options_in,
    parse_options,
    plain,
    read_options,
)
from pybuild.options.page import page
from pybuild.options.regions import RegionSpec
from pybuild.options.table import VERBS, BuildOptions, LoadOptions, QuantiseOptions
from pybuild.targets.names import hint_for
from pybuild.targets.target import TARGETS

ROOT = Path(__file__).resolve().parents[2]
INT8 = str(ROOT / "examples" / "digits" / "digits_int8.tflite")
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        (BuildOptions, Model.build),
        (LoadOptions, pybuild.load),
        (QuantiseOptions, pybuild.quantise),
    ],
)
def test_every_option_is_a_keyword_of_python(kind: type[Any], function: Any) -> None:
    """And no keyword is forgotten; defaults are the table's."""
    own = {"self", "what", "force", "out", "name", "functions", "weights", "model"}
    own |= {"progress"}
    given = inspect.signature(function).parameters
    known = {one.keyword: one for one in options_in(kind)}
    rounding = {"rounding"} if kind is QuantiseOptions else set()  # that of the build
    assert set(given) - own - rounding == set(known)
    for name, one in known.items():
        default = given[name].default
        assert default is inspect.Parameter.empty or one.read(default) == one.default


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_a_word_of_its_verbs(verb: str) -> None:
    command = next(
        a.choices[verb] for a in parser()._actions if isinstance(a.choices, dict)
    )
    known = {f"--{one.word}" for one in of_words(*VERBS[verb])}
    there = {o for o in command._option_string_actions if o.startswith("--")}
    layers = set() if verb == "sweep" else {"--long"}
    assert there - known == {"--help", "--json"} | layers
    assert known <= there


def test_no_word_is_there_twice() -> None:
    for verb, classes in VERBS.items():
        words = [one.word for one in of_words(*classes)]
        assert len(words) == len(set(words)), verb


def test_the_page_is_up_to_date() -> None:
    """Else: python -m pybuild.options.page > docs/options.md"""
    assert (ROOT / "docs" / "options.md").read_text() == page()


VALUES = {
    "rounding": "tflm", "target": {0: "cortex-m4", 1: "cortex-m0"}, "optimise": "size",
    "names": "ids", "emit": "obj", "api": "tvm", "ram_limit": 65536, "plan": "whole",
    "regions": (RegionSpec("dtcm", 16384, "fast", True),), "input": "keep",
    "push": ("a", "b"), "lazy": ("c",), "stream": ("1:2",), "storage": "given",
    "layout": {"image": "nhwc"}, "params": ("w", "v"), "compress": "lz4",
    "verify": True, "place": {"conv": 1, "*": "cost"}, "alone": False,
    "input_dims": {"batch": 1}, "input_values": {"shape": [1, -1, 2.5]},
    "bounds": {"found": 40}, "max_turns": 20, "state": {"h": "h_next"},
    "front": "front.toml", "signature": "decode", "hybrid": "float",
    "rename": {"Identity": "scores", "input:0": "image"},
    "data": "x.npz", "test": "y.npz", "calibrate": "entropy", "percentile": 99.0,
    "keep_float": ("conv",), "int16": ("dense",), "max_loss": 0.005,
    "boundary": "int8", "bias_correction": False, "fit_weights": False,
    "equalise": False, "nan": "ignore", "cores": 3,
}  # fmt: skip


@pytest.mark.parametrize("kind", [BuildOptions, LoadOptions, QuantiseOptions])
def test_values_are_the_same_after_json(kind: type[Any]) -> None:
    given = {one.keyword: VALUES[one.keyword] for one in options_in(kind)}
    made = read_options(kind, given)
    assert keywords(made) == given
    assert all(value != one.default for one, value in _rows(kind, given))
    text = json.dumps(plain(keywords(made)))
    assert read_options(kind, json.loads(text)) == made


@pytest.mark.parametrize("kind", [BuildOptions, LoadOptions, QuantiseOptions])
def test_values_are_the_same_after_words(kind: type[Any]) -> None:
    for one, value in _rows(kind, VALUES):
        if one.word and one.keyword != "target":  # devices are --device
            words = one.words(value)
            seen = vars(parsed(["inspect", INT8, *words]))[one.word.replace("-", "_")]
            assert one.read(one.of_word(seen)) == value, words


def _rows(kind: type[Any], values: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(one, values[one.keyword]) for one in options_in(kind)]


@pytest.mark.parametrize(
    ("keyword", "one", "other"),
    [
        ("ram_limit", "64K", 65536),
        ("ram_limit", {"0": "1K", 1: 512}, {0: 1024, 1: 512}),
        ("push", "image", ["image"]),
        ("lazy", "image", ("image",)),
        ("stream", "1", ["1"]),
        ("params", "w", ["w"]),
        ("params", ["replaceable"], "replaceable"),
        ("regions", "dtcm=1K:fast", [RegionSpec("dtcm", 1024, "fast")]),
        ("regions", {"dtcm": "1K:fast"}, ["dtcm=1024:fast"]),
        ("layout", "image=nhwc", {"image": "nhwc"}),
        ("place", ["conv=1", "*=cost"], {"conv": 1, "*": "cost"}),
        ("target", TARGETS["cortex-m4"], TARGETS["cortex-m4"]),
    ],
)
def test_one_value_has_several_forms(keyword: str, one: Any, other: Any) -> None:
    first, wrong = parse_options(BuildOptions, {keyword: one})
    assert wrong == []
    assert first == read_options(BuildOptions, {keyword: other})
    assert getattr(first, keyword) != getattr(BuildOptions(), keyword)


@pytest.mark.parametrize(
    ("keyword", "value", "message"),
    [
        ("ram_limit", "much", "--ram-limit: 'much' is not a size. Hint: like 4096, 64K"
         " or 1M"),
        ("ram_limit", True, "--ram-limit: 'True' is not a size. Hint: like 4096, 64K or"
         " 1M"),
        ("ram_limit", -1, "--ram-limit: '-1' is not a size. Hint: like 4096, 64K or"
         " 1M"),
        ("ram_limit", {"x": 1}, "--ram-limit: 'x' is not the number of a device. Hint: "
         "0 is the CPU"),
        ("push", [3], "--push: 3 is not a text"),
        ("alone", "yes", "alone: 'yes' is neither true nor false"),
        ("names", "idz", "--names: 'idz' is not known. Hint: did you mean 'ids'? one of"
         " full, ids"),
        ("layout", {"image": "hwc"}, "--layout: 'hwc' is not known. Hint: did you mean "
         "'nhwc'? one of nhwc, nchw, nhcw"),
        ("layout", "image", "--layout: 'image' is not NAME=nhwc"),
        ("target", "cortex-m5", "--target: 'cortex-m5' is not known. Hint: did you mean"
         " 'cortex-m85'? " + hint_for("").strip()),
        ("regions", [3], "--region: 3 is not a text"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_alike(keyword: str, value: Any, message: str) -> None:
    with pytest.raises(BuildError) as raised:
        read_options(BuildOptions, {keyword: value})
    assert str(raised.value) == message
    assert raised.value.exit_code == (64 if message.startswith("--") else 2)


def test_python_takes_what_the_command_line_takes() -> None:
    model = pybuild.load(INT8)
    made = model.build(ram_limit="64K", push="image", layout=None)
    assert made.tables.pushes and made.options.ram_limit == 65536
    problems = model.problems(push="img", ram_limit="much")
    assert [str(p) for p in problems] == [
        "--ram-limit: 'much' is not a size. Hint: like 4096, 64K or 1M",
        "--push: there is no 'img'. Hint: did you mean 'image'? one of image",
    ]
    with pytest.raises(TypeError, match="no option 'pusch'; did you mean 'push'"):
        model.problems(pusch="image")


@pytest.mark.parametrize(
    "words",
    [
        ["--target", "z80"],
        ["--emit", "elf"],
        ["--name", "3 %"],
        ["--push", "img"],
        ["--region", "dtcm"],
        ["--lazy", "img"],
        ["--rounding", "none"],
        ["--input", "kept"],
        ["--input-dim", "n"],
        ["--input-dim", "n=0"],
        ["--device", "x=cortex-m4"],
        ["--place", "conv"],
        ["--max-turns", "-1"],
        ["--hybrid", "double"],
    ],
)
def test_a_wrong_option_is_wrong_usage(words: list[str], capsys: Capture) -> None:
    assert main(["inspect", INT8, "--json", *words]) == 64
    out, err = capsys.readouterr()
    assert err.startswith(f"{words[0]}: ") and err.count("\n") == 1
    assert json.loads(out)["error"][0]["where"] == words[0]


def test_all_wrong_options_at_once(capsys: Capture) -> None:
    words = ["--target", "z80", "--samples", "0", "--ref", "tf", "--push", "img"]
    assert main(["check", INT8, *words]) == 64
    where = [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert sorted(where) == ["--push", "--ref", "--samples", "--target"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quantize"], "there is no verb 'quantize': crt build MODEL --quantise"),
        (["inspekt"], "there is no verb 'inspekt': did you mean 'inspect'? one of"),
        (["inspect", INT8, "--ram-limt", "1"],
         "there is no option --ram-limt: did you mean '--ram-limit'?"),
        (["inspect", INT8, "--targt=x"],
         "there is no option --targt: did you mean '--target'?"),
        (["inspect", INT8, "--ram", "1K"], "there is no option --ram: did you mean"),
        (["inspect", INT8, INT8], f"unexpected argument '{INT8}'"),
        (["params", "lst"], "there is no action 'lst': did you mean 'list'? one of"),
    ],
)  # fmt: skip
def test_did_you_mean(words: list[str], said: str, capsys: Capture) -> None:
    assert main(words) == 64
    assert said in capsys.readouterr().err


def test_boards_that_are_meant(capsys: Capture) -> None:
    assert main(["check", INT8, "--on", "microbits"]) == 64
    assert "the nearest of `crt boards`: microbit (" in capsys.readouterr().err


def test_many_names_are_not_listed_whole() -> None:
    many = [f"layer_{i}" for i in range(100)]
    assert fitting("layer_100", many) == "did you mean 'layer_10'?"
    assert fitting("x", many).endswith(", layer_15, ... (100 in all)")
    assert fitting("x", ()) == "there is none"
    assert fitting("Full", ("full", "ids")) == "did you mean 'full'? one of full, ids"


def test_a_flag_has_no_value() -> None:
    flags = [one for v in VERBS.values() for one in of_words(*v)]
    assert all(one.kind.metavar for one in flags if one.kind is not kinds.FLAG)
    assert not kinds.FLAG.metavar
