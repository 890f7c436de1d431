"""Sphinx's settings for the site that `./dev docs` builds: pages of docs/ and examples/
as they are, and reference pages that pages.py makes of code."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BUILT = HERE.parents[1] / "build" / "site"
sys.path.insert(0, str(HERE))

import comments  # noqa: E402
import pages  # noqa: E402

import pybuild  # noqa: E402

project = "pybuild and crt"
author = "the authors of pybuild"
copyright = "the authors of pybuild, Apache-2.0"
version = release = pybuild.__version__
extensions = ["myst_parser", "sphinx_external_toc", "breathe", "sphinx.ext.autodoc",
              "sphinx_copybutton"]  # fmt: skip
external_toc_path = str(HERE / "nav.yml")
# a -- is an option, a quote is code
smartquotes = False
html_theme = "furo"
html_title = f"pybuild and crt {version}"
html_copy_source = html_show_sourcelink = html_show_sphinx = False
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
# it would read other pages, which a browser forbids where there is no server
html_show_search_summary = False
html_last_updated_fmt = None
templates_path: list[str] = []
# as GitHub makes them, which the pages' own links use
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# a heading of one # in the middle, as in the glossary; a struct and what is of its
# name, as C has it
suppress_warnings = ["myst.header", "duplicate_declaration.c"]
copybutton_prompt_text = "$ "
default_role = "literal"
highlight_language = "text"
breathe_projects = {"crt": str(BUILT / "doxygen" / "xml")}
breathe_default_project = "crt"
breathe_domain_by_extension = {"h": "c"}
breathe_show_include = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in pages.TYPES}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 78
c_maximum_signature_line_length = 78
man_pages = pages.MAN
man_make_section_directory = False


_ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")


def of_docstring(
    app: Any, what: str, name: str, one: Any, options: Any, lines: list[str]
) -> None:
    """Docstrings have the fields of docs/design.md, not those of Sphinx."""
    names: frozenset[str] | None = None  # of a class: all are its attributes
    if what not in ("class", "exception"):
        try:
            names = frozenset(inspect.signature(one).parameters)
        except (TypeError, ValueError):
            names = frozenset()
    lines[:] = comments.restructured("\n".join(lines), names)


def of_signature(
    app: Any, what: str, name: str, one: object, options: Any, *said: str | None
) -> tuple[str | None, str | None]:
    """Nobody calls a class but that for graphs made by hand; names of types inside
    others stay names, too."""
    if what == "class" and name != "pybuild.GraphBuilder":
        return "", ""
    plain = [_ALIAS.sub(r"\1", text) if text else text for text in said]
    return plain[0], plain[1]


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", of_docstring)
    app.connect("autodoc-process-signature", of_signature)
