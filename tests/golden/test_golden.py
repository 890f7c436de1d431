"""The generated C of three tiny graphs is what was last reviewed."""

from __future__ import annotations

import pytest

from pybuild.library import Library
from tests.golden.networks import FOLDER, files, libraries


@pytest.mark.parametrize("library", libraries(), ids=lambda made: made.name)
def test_the_c_is_as_reviewed(library: Library) -> None:
    for name, text in files(library).items():
        known = (FOLDER / name).read_text()
        assert text == known, f"{name}: review, then python -m tests.golden.networks"
