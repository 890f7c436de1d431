"""A sample of kernels has each kind of them, in few."""

from __future__ import annotations

import itertools
from dataclasses import replace

from pybuild.ir.loop import INT8, load
from pybuild.kernels.base.builder import Builder
from tests.kernels.few.kinds import few_of_each_kind, kinds_of_name


def test_each_two_words_stay() -> None:
    k = Builder("one")
    y, x = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT8)
    k.store(y, 0, k.let("first", load(x, 0)))
    one = k.finish()
    ways = itertools.product(("conv", "dense"), ("by4", "by8", "odd"), ("left", "even"),
                             ("even", "away", "once"))  # fmt: skip
    funcs = [replace(one, name="_".join(words)) for words in ways]
    few = few_of_each_kind(funcs)
    assert len(few) * 2 < len(funcs)
    kinds, all_kinds = (
        {kind for func in of for kind in kinds_of_name(func.name)}
        for of in (few, funcs)
    )
    assert kinds == all_kinds


def test_a_name_s_kinds() -> None:
    assert kinds_of_name("conv_3x3_by4") == {
        ("conv",), ("3x3",), ("by4",), ("by", "conv"), ("by", "x"), ("conv", "x"),
    }  # fmt: skip
