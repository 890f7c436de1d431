"""What tests/same_code.py takes for the same code: names of its own and comments may
differ, and nothing else."""

from __future__ import annotations

import pytest

from tests.golden.networks import conv_int8
from tests.same_code import different, normal

CODE = """\
#include "net.h"
/* adds */
static void add(void *const *p, const int32_t *a)
{
    const int32_t count = a[0];
    int8_t *y = p[0];
    for (int32_t i = 0; i < count; i++) {
        int32_t value = y[i];
        y[i] = (int8_t)(value + 3);
    }
    for (int32_t j = 0; j < count; j++) {
        int32_t value = y[j];
        y[j] = (int8_t)crt_saturate8(value * 2);
    }
}

static const char *const title = "a /* b */";
"""
SAME = (
    ("/* adds */", "/* sums\n * up */"),
    ("add(", "kernel_of_first("),
    ("count", "n"),
    ("int32_t value = y[j];", "int32_t other = y[j];\n"),
    ("y[j] = (int8_t)crt", "y[j] =\n        (int8_t)crt"),
)
OTHER = (
    ("+ 3", "+ 4"),
    ("i < count", "i <= count"),
    ("value + 3", "count + 3"),
    ("int32_t value = y[i]", "int16_t value = y[i]"),
    ("= y[j]", "= y[j + 1]"),
    ("a /* b */", "a /* c */"),
    ("crt_saturate8", "crt_saturate16"),
    ("const char *const title", "char *const title"),
    ('"net.h"', '"other.h"'),
    ("y = p[0]", "y = p[1]"),
)


def _changed(old: str, new: str) -> str:
    assert old in CODE
    made = CODE.replace(old, new)
    return made.replace("(value * 2)", "(other * 2)") if "other = " in new else made


@pytest.mark.parametrize(("old", "new"), SAME)
def test_names_comments_and_lines_may_differ(old: str, new: str) -> None:
    assert normal(_changed(old, new)) == normal(CODE)


@pytest.mark.parametrize(("old", "new"), OTHER)
def test_code_may_not(old: str, new: str) -> None:
    assert normal(_changed(old, new)) != normal(CODE)


def test_names_that_others_see_stay() -> None:
    old = {"net.h": "int net_run(void);", "net.c": "int net_run(void) { return 0; }"}
    renamed = {n: t.replace("net_run", "net_go") for n, t in old.items()}
    assert different(old, renamed) == ["net.c", "net.h"]
    assert different(old, {"net.h": old["net.h"]}) == ["net.c"]
    own = {**old, "net.c": "static int f(void) { return 0; }" + old["net.c"]}
    other = {**old, "net.c": own["net.c"].replace("f(", "g(")}
    assert different(own, other) == []


def test_a_real_net_and_one_number_of_it() -> None:
    files = conv_int8().model().build().sources()
    assert different(files, files) == []
    text = files["conv_int8.c"]
    assert "channel += 4" in text
    changed = {**files, "conv_int8.c": text.replace("channel += 4", "channel += 2")}
    assert different(files, changed) == ["conv_int8.c"]
    weights = files["conv_int8_weights.c"]
    start = weights.index("{\n    ") + 6
    flipped = weights[:start] + "1" + weights[start:]
    assert different(files, {**files, "conv_int8_weights.c": flipped})
