"""The errors on docs/operators.md are the bounds that the tests hold."""

from __future__ import annotations

from tests.magnitudes.table import HEAD, NEXT, PAGE, section


def test_the_page_says_the_bounds() -> None:
    said = HEAD + PAGE.read_text().partition(HEAD)[2].partition(NEXT)[0]
    assert said == section(), "python -m tests.magnitudes.table writes it anew"
