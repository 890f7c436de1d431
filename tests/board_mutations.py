"""Mutations of what counts and bounds on boards, for mutate.py: its five fields."""

_SIZES = "tests/boards/test_on_boards.py::test_counts_and_sizes[mps2-an386-gcc]"
_ALIKE = "tests/boards/test_on_boards.py::test_both_simulators_count_alike[mps2-an386]"

BOARDS = (
    (
        "the layer that instructions are counted for",
        "boards/host/count.h",
        "c->step = at / c->step_bytes;",
        "c->step = c->step < c->step_count ? c->step : at / c->step_bytes;",
        _SIZES,
    ),
    (
        "the instructions of a block in Unicorn",
        "boards/host/unicorn_count.c",
        "i += high >= 0xE8u ? 4 : 2;",
        "i += high >= 0xF0u ? 4 : 2;",
        _ALIKE,
    ),
    (
        "calls in the bound of the stack",
        "pybuild/run/board/stack.py",
        "calls |= tabled",
        "calls |= set()",
        _SIZES,
    ),
)
