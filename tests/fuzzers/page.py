"""What fuzzing has tried and reached, as the table of docs/security.md.

python -m tests.fuzz --coverage [SECONDS [READER...]]: each reader for so many seconds
(600), from its stored corpus and longer seeds; writes corpora and rows anew.
"""

from __future__ import annotations

import re
import resource
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fuzzers import corpora, of_c, reached
from tests.fuzzers.harnesses import READERS as IN_PYTHON
from tests.fuzzers.outcome import Outcome, Reach
from tests.toolchains import ROOT

PAGE = ROOT / "docs" / "security.md"
HEAD = "| reader | fuzzer | minutes | inputs tried | stored | lines | branches |"
MOST_STORED = 64  # KB of a stored corpus
Fuzz = Callable[[str, int, Path], Outcome]


def write(words: Sequence[str], fuzz: Fuzz) -> int:
    """Exit status 1 where a reader did what it may not."""
    seconds = int(words[0]) if words else 600
    status = 0
    for name in words[1:] or (*of_c.READERS, *IN_PYTHON):
        try:
            tried, minutes = fuzz_one(name, seconds, fuzz)
        except AssertionError as error:
            print(f"{name}: {error}", flush=True)
            status = 1
            continue
        row = measured_row(name, minutes, tried)
        PAGE.write_text(with_row(PAGE.read_text(), row))
        print(row, flush=True)
    return status


def fuzz_one(name: str, seconds: int, fuzz: Fuzz) -> tuple[int, float]:
    """How many inputs were tried, in how many minutes of a processor; the least of
    them that reach as much are stored.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as temporary:
        inputs = Path(temporary) / "inputs"
        if name in IN_PYTHON:
            corpora.put(inputs, IN_PYTHON[name].more())
        before = _spent()
        tried = fuzz(name, seconds, inputs).tried
        minutes = (_spent() - before) / 60
        folder = Path(temporary) / "least"
        folder.mkdir()
        if name in IN_PYTHON:
            kept = reached.least(name, inputs)
        else:
            kept = of_c.least(of_c.READERS[name], inputs, folder)
        corpora.store(name, kept)
    size = (corpora.STORED / f"{name}.tar.xz").stat().st_size
    assert size <= MOST_STORED << 10, f"the corpus takes {size} bytes"
    return tried, minutes


def _spent() -> float:
    """Seconds of a processor that programs took which were started here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reach_of(name: str) -> Reach:
    """What the seeds and the stored corpus reach."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as temporary:
        folder = Path(temporary)
        reader = of_c.READERS.get(name) or IN_PYTHON[name]
        inputs = corpora.put(folder / "in", [*reader.seeds(), *corpora.stored(name)])
        if isinstance(reader, of_c.CReader):
            return of_c.reach(reader, inputs, folder)
        return reached.reach(name, inputs)


def measured_row(name: str, minutes: float, tried: int) -> str:
    fuzzer = "Atheris" if name in IN_PYTHON else "libFuzzer"
    reach = reach_of(name)
    cells = [name, fuzzer, f"{minutes:.1f}", f"{tried:,}"]
    cells.append(f"{len(corpora.stored(name)):,}")
    cells += [_share(*reach.lines), _share(*reach.branches)]
    return f"| {' | '.join(cells)} |"


def _share(reached: int, all_: int) -> str:
    return f"{100 * reached / all_:.1f} % of {all_:,}"


def rows(page: str) -> dict[str, str]:
    """The rows of the table, by reader."""
    _, _, below = page.partition(HEAD + "\n")
    table = below.partition("\n\n")[0].splitlines()[1:]
    return {line.split("|")[1].strip(): line for line in table}


def with_row(page: str, row: str) -> str:
    """The page with a row in its place."""
    found = rows(page)
    found[row.split("|")[1].strip()] = row
    order = [name for name in (*of_c.READERS, *IN_PYTHON) if name in found]
    above, _, below = page.partition(HEAD + "\n")
    rule, _, below = below.partition("\n")
    after = re.sub(r"\A(?:\|.*\n)*", "", below)
    return f"{above}{HEAD}\n{rule}\n" + "".join(f"{found[n]}\n" for n in order) + after
