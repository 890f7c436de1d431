"""What the site reads of comments and docstrings: their fields, and to which
declarations a comment belongs."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from tests.toolchains import ROOT

HEADER = """\
/* crt/x.h: what it is for.
 * Knows nothing. */
#define X_H

/* For every function:
 *
 * Thread  one at a time */

/* Copies an input <in>.
 *
 * Units   bytes: exactly
 *         as many as there are
 * Errors  CRT_ERR_NULL */
int crt_one(int a,
            int b);
int crt_two(void);

int crt_three(void);

struct crt_x {
    int a; /* in bytes */
};
"""


@pytest.fixture(scope="module")
def comments() -> ModuleType:
    place = ROOT / ".ci" / "site" / "comments.py"
    spec = importlib.util.spec_from_file_location("site_comments", place)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_a_header_as_doxygen_reads_it(comments: ModuleType) -> None:
    made = comments.header(HEADER)
    said = (
        "Copies an input \\<in\\>.\n\n@par Units\nbytes: exactly as many as there are"
    )
    assert made.count(said) == 2, "once for each declaration until an empty line"
    assert made.startswith("/** @file crt/x.h\nWhat it is for.\nKnows nothing. */\n")
    assert "/** @file\n@details\nFor every function:\n\n@par Thread\n" in made
    assert "int a; /**< In bytes */" in made
    before = made[: made.index("int crt_three")]
    assert before.endswith("int crt_two(void);\n\n")
    code = [line for line in HEADER.splitlines() if line.startswith(("int", "  "))]
    assert all(line.split(" /*")[0] in made for line in code)


def test_a_docstring_as_sphinx_reads_it(comments: ModuleType) -> None:
    fields = "a, b  both\n   of them\nErrors  ValueError"
    text = f"Reads `x`, see docs/a-b.md, *all.\n\n{fields}"
    assert comments.restructured(text, frozenset("ab")) == [
        "Reads ``x``, see :doc:`/a-b`, \\*all.",
        "",
        ":param a: both of them",
        ":param b: both of them",
        ":Errors: ValueError",
        "",
    ]
    of_class = comments.restructured("A thing.\n\nsize  in bytes", None)
    assert of_class[2] == ":ivar size: in bytes"
