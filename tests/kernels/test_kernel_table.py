"""The table of kernels in docs/operators.md is what the code says."""

from __future__ import annotations

from tests.kernel_table import HEAD, PAGE, section


def test_the_page_is_what_the_code_says() -> None:
    page = PAGE.read_text()
    said = HEAD + page.partition(HEAD)[2]
    assert said == section(), "python -m tests.kernel_table writes it anew"
