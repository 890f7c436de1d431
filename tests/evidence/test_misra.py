"""MISRA C:2012: crt and what is printed have no finding of a mandatory or required rule
without a tag at its line, and docs/misra.md says what cppcheck's add-on counts."""

from __future__ import annotations

import pickle
import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import made_once, model_path
from tests.evidence import misra, nets, page
from tests.toolchains import absent, run

FOUND = "found.pickle"


@pytest.fixture(autouse=True)
def checker() -> None:
    if shutil.which("cppcheck") is None:
        absent("there is no cppcheck")


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[misra.Finding]]:
    folder = made_once(tmp_path_factory, "misra", _counted)
    found: dict[str, list[misra.Finding]]
    found = pickle.loads((folder / FOUND).read_bytes())
    return found


def _counted(folder: Path) -> None:
    folder.mkdir()
    (folder / FOUND).write_bytes(pickle.dumps(page.counted(folder)))


def test_what_is_in_the_tree_has_a_tag_or_a_reason(
    counted: dict[str, list[misra.Finding]],
) -> None:
    assert {name: misra.untagged(found) for name, found in counted.items()} == {
        name: [] for name in ("crt", *nets.IN_TREE)
    }
    assert sum(map(len, counted.values())) > 500  # the checker has run


def test_the_page_has_the_counts(counted: dict[str, list[misra.Finding]]) -> None:
    """`./dev evidence` writes them anew. Those of networks move with every kernel: of
    them the rules are compared, of crt the numbers. Another cppcheck counts otherwise:
    then what has no tag is looked for alone, above."""
    named = re.search(r"by cppcheck (\S+) ", page.PAGE.read_text())
    assert named
    here = run(["cppcheck", "--version"]).split()[1]
    if here != named[1]:
        pytest.skip(f"the page has the counts of cppcheck {named[1]}, this is {here}")
    assert _told(page.written(counted)) == _told(page.PAGE.read_text())


def _told(text: str) -> list[list[str]]:
    """The rows; of each, rule, kind, what was done, and the number of crt."""
    rows = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row[1:5]] for row in rows]


# kernels of a Cortex-M4 are those of digits, too
@pytest.mark.parametrize(
    "name", [pytest.param("kws_m4", marks=pytest.mark.sweep), "kws_m55"]
)
def test_real_networks(name: str, tmp_path: Path) -> None:
    model_path("kws_int8.tflite")
    assert misra.untagged(nets.of_net(name, tmp_path)) == []


def test_a_finding_without_a_tag_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(
        "static int f(unsigned x)\n{\n    if (x != 0)\n        return 1;\n"
        "    return 0;\n}\n\n"
        "int g(unsigned x);\n\n"
        "int g(unsigned x)\n{\n    /* MISRA 10.4: it is a test */\n"
        "    return x == 0 ? f(x) : 1;\n}\n"
    )
    found = misra.findings(tmp_path, (tmp_path / "a.c",), tmp_path)
    assert (3, "10.4") in {(one.line, one.rule) for one in misra.untagged(found)}
    assert [(one.line, one.how) for one in found if one.rule == "10.4"] == [
        (3, ""), (13, "tag"),
    ]  # fmt: skip


_TEXT = """\
/* MISRA 8.4, in this file: others declare it */
/* Adds.
 * MISRA     10.1: arithmetic; 8.14: restrict */
static void f(int *p)
{
    first();
    /* MISRA 17.7: of no use
     * here */
    second(p,
           3);
    third();
}

static void g(void)
{
}
"""
TEXT = _TEXT.split("\n")


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        (4, {"8.4", "10.1", "8.14"}),
        (6, {"8.4", "10.1", "8.14"}),
        (9, {"8.4", "10.1", "8.14", "17.7"}),
        (10, {"8.4", "10.1", "8.14", "17.7"}),
        (11, {"8.4", "10.1", "8.14"}),
        (14, {"8.4"}),
    ],
)
def test_a_tag_reaches_as_far_as_it_says(line: int, rules: set[str]) -> None:
    assert misra.tagged(TEXT, line) == rules


def test_a_tag_has_a_reason() -> None:
    assert misra.tagged(["x(); /* MISRA 17.7 */"], 1) == set()
