"""What is said where the arena is larger than its limit."""

from __future__ import annotations

import re
from typing import Any

import pytest

import pybuild
from pybuild.errors import LimitError
from pybuild.model import Model
from tests.conftest import model_path

PUSH, REUSE = "--push input_1_int8", "--input reuse"
SMALLER = "a smaller input, or fewer channels there"
LIMIT = "--ram-limit "


@pytest.fixture(scope="module")
def vww() -> Model:
    return pybuild.load(model_path("vww_int8.tflite"))


def hint(model: Model, limit: str, **options: Any) -> str:
    with pytest.raises(LimitError) as error:
        model.build(ram_limit=limit, **options)
    problem = error.value.problems[0]
    needed = int(re.search(r"has (\d+) bytes", problem.what)[1])  # type: ignore[index]
    listed = problem.what.split("alive at the peak: ")[1].removesuffix(" bytes")
    assert sum(int(one.split()[-1]) for one in listed.split(", ")) == needed
    first, _, rest = problem.hint.partition(", ")
    assert first == f"{LIMIT}{needed}"
    made = model.build(ram_limit=needed, **options)
    assert made.plan.arena_bytes <= needed
    return rest


def test_the_options_are_named_that_shrink_the_input(vww: Model) -> None:
    assert hint(vww, "20K", input="keep") == f"{PUSH}, {REUSE}, {SMALLER}"
    vww.build(ram_limit="20K", push="input_1_int8")
    vww.build(ram_limit="30K")


def test_options_that_are_in_use_are_not_named(vww: Model) -> None:
    assert hint(vww, "20K") == f"{PUSH}, {SMALLER}"
    assert hint(vww, "8K", push="input_1_int8") == SMALLER


def test_an_input_that_is_read_at_once_cannot_be_pushed() -> None:
    model = pybuild.load(model_path("ad_int8.tflite"))
    said = hint(model, "100")
    assert said == SMALLER


@pytest.mark.parametrize("target", ["generic", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("name", ["kws", "ic"])
def test_the_limit_of_the_hint_builds_and_no_byte_is_left_out(
    name: str, target: str
) -> None:
    for options in ({}, {"plan": "whole"}, {"optimise": "size"}):
        hint(pybuild.load(model_path(f"{name}_int8.tflite")), "500",
             target=target, **options)  # fmt: skip


def test_several_cores_get_no_limit_that_is_only_one_core_s() -> None:
    """Slices are chosen after the plan for one core, and may take more memory."""
    model = pybuild.load(model_path("kws_int8.tflite"))
    options = {"target": "cortex-m33", "cores": 2}
    with pytest.raises(LimitError) as error:
        model.build(ram_limit="500", **options)
    assert LIMIT not in error.value.problems[0].hint
    least = model.build(**options).least_arena()
    assert model.build(ram_limit=least, **options).plan.arena_bytes == least
