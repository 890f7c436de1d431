"""The page of PyTorch's architectures says what was measured, and no more: its rows are
networks that are made, each is near enough or refused with a way on."""

from __future__ import annotations

import re

from tests.models.eager import ENOUGH, PAGE, page, shown
from tests.toolchains import ROOT

# whose int8 values differ where a real number is the middle of two
TIES = {"vgg"}
MADE = ROOT / "tests" / "exported" / "architectures.py"


def test_rows_are_of_networks_that_are_made() -> None:
    made = set(re.findall(r'"([a-z]\w+)"(?:: \(|, \d+, \{)', MADE.read_text()))
    assert len(shown()) >= 60 and set(shown()) <= made


def test_each_is_near_to_what_pytorch_computes_or_refused_with_a_way_on() -> None:
    for name, row in shown().items():
        if row.float32.startswith("refused"):
            assert "Hint: " in row.float32, name
        else:
            assert float(row.float32) <= ENOUGH, name
        at_ties = name in TIES and re.fullmatch(r"= but \d+ at ties", row.int8)
        assert row.int8 in ("=", "") or at_ties, name


def test_the_page_is_as_it_is_written() -> None:
    assert PAGE.read_text() == page(shown())
