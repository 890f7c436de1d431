"""Names that would end a comment, a string, a rule or an element, through each printer:
what comes out is parsed, compiled and run, and does what it does for plain ones."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
import subprocess
import xml.dom.minidom
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.emit.llvm.model import module
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.library import Library
from pybuild.package.curve_svg import Curve, svg
from tests.emit.test_generated_c import CLEAN, shell
from tests.toolchains import require

NAMES = (
    "*/ int owned(void); /*",
    'a"; system("touch owned"); //',
    "line\n#error owned\r\n",
    "back\\\nslash \\",
    "??/\n??=error owned",
    "$(shell touch owned)",
    "`touch owned`; touch owned",
    "${owned} $ENV{HOME} $<CONFIG>",
    "%s%n%999999999d",
    "</script><script>owned()</script>",
    "--><svg onload='owned()'>]]><!--",
    '!0 = !{} ; "}\ndefine void @owned() { ret void }\n',
    "\\22\\0A",
    "../../owned",
    "\x1b[2J\x07\x00\u2028\u202e",
    "a" * 5000,
    "ä中🙂",
)
X = np.array([[-1.5, 0.25, 2.0, 3.5]], np.float32)


def graph(names: tuple[str, ...], title: str) -> Graph:
    """A chain whose layers, input and outputs have these names."""
    net = GraphBuilder(title)
    first, *others = names
    x = net.input(first, (1, 4), "float32")
    for number, name in enumerate(others):
        x = net.op("add", x, x, name=name)
        if number % 2:
            net.output(x)
    return net.build()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Library, Path]:
    folder = tmp_path_factory.mktemp("hostile") / "net"
    return pybuild.build(graph(NAMES, NAMES[1]), folder, name="net"), folder


def plain() -> Library:
    return pybuild.build(graph(tuple(f"n{i}" for i in range(len(NAMES))), "plain"))


def results(library: Library, backend: str) -> list[np.ndarray]:
    net = library.host(backend=backend)
    net.run(**{library.plan.graph.inputs[0]: X})
    return [net.get_output(i) for i in range(len(library.tables.outputs))]


@pytest.mark.parametrize("backend", ["llvm", "c"])
def test_it_computes_the_same(tree: tuple[Library, Path], backend: str) -> None:
    if backend == "c":
        require("gcc")
    for have, want in zip(
        results(tree[0], backend), results(plain(), backend), strict=True
    ):
        np.testing.assert_array_equal(have, want)


def test_llvm_has_no_function_of_a_name(tree: tuple[Library, Path]) -> None:
    import llvmlite.binding as llvm

    parsed = llvm.parse_assembly(str(module(tree[0].tables)))
    assert "owned" not in {function.name for function in parsed.functions}


def test_c_compiles_and_make_and_cmake_do_nothing_else(
    tree: tuple[Library, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "net"
    shutil.copytree(tree[1], folder)
    includes = [f"-I{folder}", f"-I{folder / 'crt' / 'include'}"]
    shell(
        require("gcc"), *CLEAN, "-fsyntax-only", *includes, *sorted(folder.glob("*.c"))
    )
    header = folder / "net.h"
    require("g++")
    shell("g++", "-std=c++11", "-Werror", "-fsyntax-only", *includes, header)
    done = subprocess.run(
        [require("make"), "-C", folder], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    require("cmake")
    shell("cmake", "-S", folder, "-B", tmp_path / "made")
    assert not [path for path in tmp_path.rglob("*owned*")]


class _Elements(html.parser.HTMLParser):
    """Which elements a page has, and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, frozenset[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, frozenset(key for key, _ in attrs)))


def _elements(page: str) -> list[tuple[str, frozenset[str]]]:
    reader = _Elements()
    reader.feed(page)
    return reader.found


def test_pages_have_the_elements_of_plain_names(tree: tuple[Library, Path]) -> None:
    assert _elements(tree[0].to_html()) == _elements(plain().to_html())
    for made in (tree[0]._repr_html_(), plain()._repr_html_()):
        assert not any("onload" in keys for _, keys in _elements(made))


def test_a_drawing_is_xml(tree: tuple[Library, Path]) -> None:
    library = tree[0]
    points, chosen = library.ram_curve(), library.ram_point()
    for name in NAMES[:-3]:  # what XML cannot have is not a name of a file or board
        drawn = svg(Curve(name, points, chosen, 0, {name: 4096}))
        root = xml.dom.minidom.parseString(drawn).documentElement
        assert root is not None and root.tagName == "svg"
        assert not root.getElementsByTagName("script")


def test_files_are_parsed(tree: tuple[Library, Path]) -> None:
    seen = set()
    for path in tree[1].rglob("*"):
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix in (".svg", ".pdsc", ".xml"):
            xml.dom.minidom.parseString(path.read_bytes())
        elif path.is_file() and "crt" not in path.parts:
            text = path.read_bytes()
            # no control character: a terminal shows the files
            assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", text), path.name
        seen.add(path.suffix)
    assert seen >= {".c", ".h", ".json"}
