"""Promises of headers and the tests that name them: as docs/requirements.md says."""

from __future__ import annotations

import re

import pytest

from tests.evidence import promises, quality
from tests.evidence.promises import Promise, of_header
from tests.toolchains import STRICT, require, run, runtime

ANEW = "./dev evidence, or: python -m tests.evidence."


@pytest.fixture(scope="module")
def known() -> list[Promise]:
    return promises.promises()


def test_page_and_map_are_as_headers_and_tests_are(known: list[Promise]) -> None:
    assert promises.MAP.read_text() == promises.as_json(known), f"{ANEW}promises"
    assert promises.PAGE.read_text() == promises.page(known), f"{ANEW}promises"


def test_ids_are_unique_and_errors_are_named(known: list[Promise]) -> None:
    ids = [one.id for one in known]
    assert len(set(ids)) == len(ids) > 250
    by_id = {one.id: one for one in known}
    assert by_id["crt_graph_init:CRT_ERR_ALIGN"].tests
    assert by_id["crt_graph_set_devices:Owner"].kind == "condition"


def test_the_figures_that_are_filed_are_those_of_the_pages() -> None:
    assert quality.FILE.read_text() == quality.as_json(), f"{ANEW}quality"


def test_a_comment_is_read_field_by_field() -> None:
    text = (
        "/* x.h: a header */\n\n/* For all:\n *\n * Thread  one */\n\n"
        "/* Does it.\n *\n * Owner   yours\n"
        " * Errors  CRT_ERR_NULL; CRT_ERR_SIZE: too\n *         small */\n"
        "int crt_do(int a,\n           int b);\nvoid crt_too(void);\n"
    )
    assert [one.id for one in of_header(text, "x.h")] == [
        "x.h:Thread", "crt_do", "crt_too", "crt_do:Owner", "crt_do:CRT_ERR_NULL",
        "crt_do:CRT_ERR_SIZE",
    ]  # fmt: skip


# @req crt_crc32:Thread, crt_strerror:Thread, crt_step_run:Thread
# @req crt_lz4_unpack:Thread, crt_params_unpack:Thread, crt_model_verify:Thread
def test_crt_has_no_variable() -> None:
    """So each of its functions is re-entrant for other memory."""
    gcc = require("gcc")
    for path in runtime(gcc, *STRICT, "-fno-pic"):
        assert not re.findall(r" [bBdDC] (\w+)", run(["nm", path])), path
