"""A sample of kernels has each kind of them, in few."""

from __future__ import annotations

from tests.kernels.kernel_kinds import kinds_of_name
from tests.kernels.kernel_sample import of_each_kind
from tests.kernels.test_int16 import _jobs


def test_each_two_words_stay() -> None:
    jobs = _jobs()
    some = of_each_kind(jobs)
    names, all_names = ({name for name, _ in of} for of in (some, jobs))
    assert len(names) * 4 < len(all_names)
    kinds, all_kinds = (
        {kind for name in of for kind in kinds_of_name(name)}
        for of in (names, all_names)
    )
    assert kinds == all_kinds


def test_a_name_s_kinds() -> None:
    assert kinds_of_name("conv_3x3_by4") == {
        ("conv",), ("3x3",), ("by4",), ("by", "conv"), ("by", "x"), ("conv", "x"),
    }  # fmt: skip
