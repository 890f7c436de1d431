"""Stored inputs are read or refused, reach what the page says, and stay small."""

from __future__ import annotations

import contextlib
import re
import warnings
from pathlib import Path

import pytest

from pybuild.errors import BuildError
from tests.fuzzers import corpora, of_c, of_python, page, reached
from tests.fuzzers.harnesses import READERS, PythonReader
from tests.toolchains import absent

NAMES = (*of_c.READERS, *READERS)


@pytest.mark.parametrize("name", [n for n in READERS if corpora.stored(n)])
def test_what_is_stored_is_read_or_refused(name: str) -> None:
    """By any Python: Atheris is needed to find more, not to try what was found."""
    inputs = corpora.stored(name)
    assert len(inputs) > 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data in inputs:
            with contextlib.suppress(BuildError):
                READERS[name].read(data)


def test_the_page_has_what_is_stored_of_each_reader() -> None:
    rows = page.rows(page.PAGE.read_text())
    assert list(rows) == [name for name in NAMES if name in rows]
    for name in rows:
        stored = rows[name].split("|")[5].strip()
        assert int(stored) == len(corpora.stored(name)), name
        size = (corpora.STORED / f"{name}.tar.xz").stat().st_size
        assert size <= page.MOST_STORED << 10
    files = {path.name.partition(".")[0] for path in corpora.STORED.iterdir()}
    assert files == set(rows)


@pytest.mark.parametrize("name", ["lz4", "params"])
def test_as_much_is_reached_as_the_page_says(name: str) -> None:
    """Of one reader in C and one in Python: others are counted in the same way."""
    if name in of_c.READERS and not of_c.libfuzzer():
        absent("there is no clang with libFuzzer")
    reach = page.reach_of(name)
    row = page.rows(page.PAGE.read_text())[name]
    lines = float(re.findall(r"([\d.]+) % of", row)[0])
    assert 100 * reach.lines[0] / reach.lines[1] > lines - 3


def test_words_of_formats_are_for_readers_that_there_are() -> None:
    named = {path.stem for path in corpora.DICTIONARIES.glob("*.dict")}
    assert named <= set(NAMES)
    assert corpora.dictionary("crtp") == corpora.dictionary("image") != []
    assert corpora.dictionary("lz4") == []


def test_a_corpus_is_the_same_bytes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "STORED", tmp_path)
    corpora.store("one", [b"abc", b"", b"abc", b"a"])
    first = (tmp_path / "one.tar.xz").read_bytes()
    assert corpora.stored("one") == [b"", b"a", b"abc"]
    corpora.store("one", [b"a", b"abc", b""])
    assert (tmp_path / "one.tar.xz").read_bytes() == first
    assert corpora.stored("none") == []


def _faulty(data: bytes) -> None:
    """Refuses what is empty, and fails where the first bytes are of one kind."""
    if not data:
        raise BuildError("x", "is empty")
    if data[:2] == b"PK":
        raise KeyError(data)


FAULTY = PythonReader(_faulty, lambda: [b"P", b""], ("tests/fuzzers/test_corpora.py",))


@pytest.mark.slow
def test_atheris_finds_a_fault(tmp_path: Path) -> None:
    if not of_python.is_there():
        absent("there is no Atheris for this Python")
    inputs = corpora.put(tmp_path / "in", FAULTY.seeds())
    with pytest.raises(AssertionError, match=r"KeyError: b'PK"):
        of_python.fuzz_python("tests.fuzzers.test_corpora:FAULTY", inputs, 60)


def test_what_is_kept_reaches_all_that_is_reached(tmp_path: Path) -> None:
    inputs = corpora.put(tmp_path / "all", READERS["params"].seeds() * 2)
    kept = reached.least("params", inputs)
    assert 0 < len(kept) <= len(set(READERS["params"].seeds()))
    again = corpora.put(tmp_path / "again", kept)
    assert reached.reach("params", again) == reached.reach("params", inputs)
