"""Text files of strangers, each key of another type: refused in lines, or read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybuild.files.parse import Unreadable, parse_json, parse_toml
from pybuild.files.shape import WORDS, misfits
from pybuild.html.schema import of_image, schema
from tests.attacks.damaged import (
    COMMON,
    KINDS,
    OF_JSON,
    faults,
    some,
    tried,
    with_fault,
)
from tests.attacks.documents import ENTRY, report

# how many of the inputs of a kind are tried each time: all take minutes
MOST = {"front": 120, "crt.toml": 100, "crt inspect": 6, "rebuild": 30, "sweep": 40,
        "report.json": 40, "files.sha256": 6}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_refused_or_read(name: str) -> None:
    kind = KINDS[name]
    counts = tried(kind, some(kind.inputs(), MOST.get(name, 100)))
    assert set(counts) <= {"accepted", "refused"}
    assert counts["refused"] or name == "sweep"


def test_a_stored_build_that_is_none_is_made_again(tmp_path: Path) -> None:
    from pybuild.sweeps.store import Store
    from tests.attacks.damaged import as_json

    store = Store(tmp_path)
    (store.builds / "k.json").write_bytes(as_json(ENTRY))
    assert store.entry("k") is not None
    for key, bad in (("report", "../../x"), ("figures", {"ram": "x"}),
                     ("problems", [1]), ("limit", 0), ("more", 1)):  # fmt: skip
        (store.builds / "k.json").write_bytes(as_json({**ENTRY, key: bad}))
        assert store.entry("k") is None


def _words(one: Any) -> set[str]:
    """The words of a schema, without the names of properties."""
    found: set[str] = set()
    if isinstance(one, list):
        return found.union(*map(_words, one))
    for key, value in one.items() if isinstance(one, dict) else ():
        found.add(key)
        if key in ("properties", "$defs"):
            found = found.union(*map(_words, value.values()))
        elif key not in ("const", "enum"):
            found |= _words(value)
    return found


def test_what_is_checked_is_what_json_schema_says() -> None:
    """Beside the package jsonschema, on every fault of some kinds."""
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    assert _words(schema()) | _words(of_image()) <= WORDS
    whole = {"$ref": "#/$defs/Report", "$defs": schema()["$defs"]}
    judge = validator(whole)
    known = [one for one in COMMON if one not in (0, 5, -1)]
    bad = faults(report(), (*known, *OF_JSON[:1]))
    wrong = [with_fault(report(), *one) for one in bad[:: len(bad) // 60]]
    # a float without a fraction is a whole number there, not here
    wrong = [one for one in wrong if "1e+308" not in str(one)]
    for one in [report(), *wrong]:
        assert bool(list(misfits(one, whole, whole["$defs"]))) != judge.is_valid(one)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a." * 40000 + "a = 1", "more than 16 parts"),
        ("x = {" + "'a' . " * 20 + "b = 1}", "more than 16 parts"),
        ("\n[" + '"a".' * 200000 + "a]", "more than 16 parts"),
        ("x = " + "[" * 3000 + "]" * 3000, "nested too deep"),
        ("x = " + "{a=" * 70 + "1" + "}" * 70, "nested too deep"),
        ("x = " + "9" * 5000, "thousands of digits"),
        ("x = 0x" + "f" * 5000, "more than 64 bits"),
        ("#" * (1 << 20) + "\n", "more than 1,048,576 characters"),
    ],
)
def test_toml_is_limited_before_it_is_parsed(text: str, what: str) -> None:
    with pytest.raises(Unreadable, match=what):
        parse_toml(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[" * 100000, "nested too deep"),
        ('{"a":' * 70 + "1" + "}" * 70, "nested too deep"),
        ("[" + "1," * 4_000_001 + "1]", "more than 4,000,000 values"),
        ("[1e999]", "beyond those of float64"),
        ("[NaN]", "has NaN"),
        ("9" * 5000, "thousands of digits"),
        ("[" + "9" * 40 + "]", "more than 64 bits"),
        ("{]", "is not JSON"),
    ],
)
def test_json_is_limited_before_it_is_parsed(text: str, what: str) -> None:
    with pytest.raises(Unreadable, match=what):
        parse_json(text)


def test_ordinary_files_are_read() -> None:
    assert parse_toml("a.b.c = 1\nx = '1.2.3.4.5.6.7.8.9'") == {
        "a": {"b": {"c": 1}}, "x": "1.2.3.4.5.6.7.8.9",
    }  # fmt: skip
    many = ",".join(["1"] * 10)
    assert parse_json('{"a": [' + many + '], "b": "' + "," * 5_000_000 + '"}')["a"]
