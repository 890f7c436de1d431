"""The site that `./dev docs` builds: no warning, no link that leads nowhere, all of the
code's names in the reference, and a search that needs no server."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import pybuild
from pybuild.cli.parser import commands, parser
from tests.conftest import made_once
from tests.html.browser import browser, settled, violations
from tests.toolchains import ROOT, require, require_module

HEADERS = ROOT / "crt" / "include" / "crt"
FUNCTION = re.compile(r"^[a-zA-Z_](?:[\w *]|\n)*?\b(crt_\w+)\(", re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once: two processes would write to one folder of the tree."""
    require("doxygen")
    for name in ("sphinx", "myst_parser", "breathe", "furo", "sphinx_external_toc"):
        require_module(name)
    return made_once(tmp_path_factory, "site", _build) / "html"


def _build(folder: Path) -> None:
    out = folder / "html"
    words = [sys.executable, str(ROOT / ".ci" / "site" / "build.py"), str(out)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


class _Page(HTMLParser):
    """What a page links to, and what can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


def test_no_link_leads_nowhere(site: Path) -> None:
    pages = {path: _Page(path) for path in sorted(site.rglob("*.html"))}
    assert len(pages) > 100
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve()
            target = target if parts.path else path
            there = target.exists()
            if there and target in pages:
                there = unquote(parts.fragment) in pages[target].anchors
            if not there:
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"<(?:script|img)[^>]* src=\"(?:https?:)?//", text), path
        assert not re.search(r"<link[^>]* href=\"(?:https?:)?//", text), path


@pytest.fixture(scope="module")
def known(site: Path) -> dict[str, set[str]]:
    """The names that the reference explains, by kind."""
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as file:
        found = InventoryFile.load(file, "", lambda base, path: path)
    return {kind: set(names) for kind, names in found.items()}


def test_every_name_of_the_package_is_in_it(known: dict[str, set[str]]) -> None:
    names = {name for kind in known if kind.startswith("py:") for name in known[kind]}
    unknown = [
        name
        for name in pybuild.__all__
        if f"pybuild.{name}" not in names and name not in ("contrib", "nd", "error")
    ]
    assert not unknown


def test_every_function_of_the_runtime_is_in_it(known: dict[str, set[str]]) -> None:
    there = known["c:function"] | known["c:type"]
    unknown, count = [], 0
    for header in sorted(HEADERS.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        text = re.sub(r"^#(?:.*\\\n)*.*", "", text, flags=re.MULTILINE)
        for name in FUNCTION.findall(text):
            count += 1
            if name not in there:
                unknown.append(f"{header.name}: {name}")
    assert count > 150 and not unknown
    own = {"digits_init", "digits_run", "digits_image", "digits_predict"}
    assert own <= known["c:function"]


def test_every_option_and_verb_is_in_it(site: Path, known: dict[str, set[str]]) -> None:
    for name, verb in commands(parser()).items():
        said = known["std:cmdoption"]
        for action in verb._actions:
            for word in action.option_strings:
                assert f"crt-{name}.{word}" in said, (name, word)
        page = (site.parent / "man" / f"crt-{name}.1").read_text()
        assert page.count(".TP") > 3 and ".SH NAME" in page.upper()
    assert "exit codes" in (site.parent / "man" / "crt.1").read_text().lower()


@pytest.fixture(scope="module")
def window() -> Iterator[object]:
    with browser() as driver:
        yield driver


def test_the_search_needs_no_server(site: Path, window: object) -> None:
    driver: Any = window
    driver.get(f"{(site / 'search.html').as_uri()}?q=crt_graph_run")
    driver.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "const look = () => document.querySelector('ul.search li a')"
        " ? done() : setTimeout(look, 50); look();"
    )
    links = driver.execute_script(
        "return [...document.querySelectorAll('ul.search li a')].map(a => a.href)"
    )
    assert any("reference/c/graph.html" in link for link in links)
    assert driver.get_log("browser") == []


PAGES = ("index", "first-board", "glossary", "reference/c/graph",
         "reference/cli/crt-build", "reference/python/index",
         "reference/files/report-json")  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_a_phone(site: Path, window: object, page: str) -> None:
    driver: Any = window
    driver.set_window_size(500, 900)  # the least of Chromium's windows
    driver.get((site / f"{page}.html").as_uri())
    settled(driver, "0")
    assert driver.get_log("browser") == []
    wide, room = driver.execute_script(
        "const e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
    )
    assert wide <= room


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index", "tour", "reference/c/graph"])
def test_a_page_shuts_nobody_out(
    site: Path, window: object, page: str, theme: str
) -> None:
    driver: Any = window
    driver.set_window_size(1400, 1000)
    driver.get((site / f"{page}.html").as_uri())
    settled(driver, f"document.body.dataset.theme = '{theme}'")
    assert violations(driver) == []
    driver.get_log("browser")  # axe-core asks for style sheets


# ---- what differs by Doxygen and by Python ------------------------------------


def _of_site(name: str) -> Any:
    """A module of the site's own folder."""
    folder = str(ROOT / ".ci" / "site")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def test_enums_without_a_tag_have_a_name_by_any_doxygen(tmp_path: Path) -> None:
    form = '<memberdef kind="enum" id="{}">\n  <type></type>\n  <name>{}</name>\n'
    old, new = form.format("a", "@0"), form.format("b", "")
    (tmp_path / "new.xml").write_text(new + form.format("c", "kind") + new)
    (tmp_path / "old.xml").write_text(old)
    _of_site("build").name_enums(tmp_path)
    names = re.findall("<name>(.*)</name>", (tmp_path / "new.xml").read_text())
    assert names == ["@0", "kind", "@1"]
    assert (tmp_path / "old.xml").read_text() == old


def test_a_docstring_is_one_line_of_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 has docstrings without their indentation."""
    require_module("breathe")
    said = "What goes\non here.\n\nMore."
    monkeypatch.setattr(pybuild.BuildError, "__doc__", said)
    text = _of_site("pages").error_codes()
    assert ": What goes on here.\n" in text
    listed = text[text.index("Python\n------") :].splitlines()[2:]
    assert all(line.startswith("* ") for line in listed if line)
