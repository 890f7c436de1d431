"""Pages say what is: their links lead somewhere, their numbers are true, and what is
written by code is what the code writes."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from tests import glossary
from tests.mutate import handmade
from tests.snippets import BLOCK, pages

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(rf"{BLOCK.pattern}|`[^`\n]*`(?!\])", re.MULTILINE | re.DOTALL)
EVERY = [*pages(ROOT), ROOT / "CONTRIBUTING.md"]


def _links(page: Path) -> list[tuple[str, str]]:
    """File and anchor of each, but for those of other sites."""
    found = LINK.findall(CODE.sub("", page.read_text()))
    own = [link for link in found if not link.startswith(("http://", "https://"))]
    return [(file, anchor) for file, _, anchor in (link.partition("#") for link in own)]


def _anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_lead_somewhere() -> None:
    wrong = []
    for page in EVERY:
        for file, anchor in _links(page):
            target = (page.parent / file).resolve() if file else page
            if not target.exists() or (anchor and anchor not in _anchors(target)):
                wrong.append(f"{page.relative_to(ROOT)}: {file}#{anchor}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_each_page_is_linked() -> None:
    linked = {
        (page.parent / file).resolve() for page in EVERY for file, _ in _links(page)
    }
    assert {page for page in EVERY if page.name != "README.md"} <= linked


def test_each_page_is_on_the_menu_of_the_site() -> None:
    """Else `./dev docs` fails, which takes longer to say so."""
    menu = (ROOT / ".ci" / "site" / "nav.yml").read_text()
    named = re.findall(r"(?:file|root|glob): \"?([^\s\"]+)", menu)
    docs = {page.stem for page in (ROOT / "docs").glob("*.md")}
    headers = (ROOT / "crt" / "include" / "crt").glob("*.h")
    docs |= {f"reference/c/{header.stem}" for header in headers}
    lost = {page for page in docs if not any(fnmatch(page, one) for one in named)}
    assert not lost, "a line in .ci/site/nav.yml"


def test_the_glossary_is_the_list() -> None:
    assert glossary.PAGE.read_text() == glossary.page(), "python -m tests.glossary"
    words = [entry["word"] for entry in glossary.entries("word")]
    assert len(words) == len(set(words)) > 30


def _cases(folder: str, pattern: str) -> int:
    files = sorted((ROOT / "tests" / folder).rglob(pattern))
    return sum(len(tomllib.loads(file.read_text()).get("case", ())) for file in files)


def _mutations() -> int:
    """Those by hand; what operators draw is not counted."""
    return len(handmade.entries())


def test_numbers_of_how_it_is_tested() -> None:
    """They are lower bounds, and not far below what there is."""
    page = (ROOT / "docs" / "testing.md").read_text()
    rows = re.findall(r"^\| (.*?) \| ([\d,]+) \|$", page, re.MULTILINE)
    said = {
        what.split(":")[0].split(",")[0]: int(n.replace(",", "")) for what, n in rows
    }
    table = (ROOT / "docs" / "benchmarks-values.md").read_text()
    own = re.findall(r"^\| crt, [\w-]+ \| ([\d,]+) \|", table, re.MULTILINE)
    messages = ROOT / "tests" / "failing" / "messages.toml"
    counted = {
        "cases of operators": _cases("ops", "*.toml"),
        "ONNX's own cases": sum(int(count.replace(",", "")) for count in own),
        "mutations by hand": _mutations(),
        "invalid inputs with the exact message that they must give": len(
            tomllib.loads(messages.read_text())
        ),
        "cases of passes": len([*(ROOT / "tests" / "passes").rglob("*.txt")]),
        "boards that are emulated to the instruction": len(
            [
                f
                for f in (ROOT / "boards").glob("*/board.toml")
                if "qemu" in f.read_text()
            ]
        ),
    }
    assert counted.keys() == said.keys() - {"tests"}
    wrong = {
        what: (said[what], count)
        for what, count in counted.items()
        if not said[what] <= count <= said[what] * 1.25
    }
    assert wrong == {}
