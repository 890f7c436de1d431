"""Mutations of rows that lie over rows that are done with, for mutate.py: its five
fields."""

_LIVES = "tests/plan/test_live_ranges.py"
_BYTES = "tests/plan/test_plan_bytes.py::test_rows_are_there_until_they_are_read"
_HAND = f"{_LIVES}::test_a_convolution_follows_its_input_by_two_rows"

_CUTS = "tests/plan/test_row_cuts.py"

WRITTEN_OVER = (
    (
        "the link that asks where several do",
        "pybuild/plan/schedule/lock_step.py",
        "if len(known) == 1 else 0",
        "if known else 0",
        "tests/crt/test_order.py",
    ),
    (
        "the link that is gone back to",
        "crt/src/lockstep.c",
        "from = &links[begun->asker - 1u];",
        "from = &links[begun->asker];",
        "tests/crt/test_order.py",
    ),
    (
        "layers in place that drift",
        "pybuild/plan/choice.py",
        "for still in (False, True):",
        "for still in (False,):",
        f"{_CUTS}::test_many_equal_layers_in_place_do_not_drift",
    ),
    (
        "rows of a stage's input that make no room",
        "pybuild/plan/memory/row_cuts.py",
        "Beyond(given, later, given - self._unspent)",
        "Beyond(given, later, ())",
        f"{_CUTS}::test_no_cuts_need_fewer_bytes_row_by_row",
    ),
    (
        "a row that is free one row too early",
        "pybuild/plan/memory/live_ranges.py",
        "return _marks(last, size, np.maximum)",
        "return _marks(np.roll(last, 1), size, np.maximum)",
        _HAND,
    ),
    (
        "a slot that is free one band too early",
        "pybuild/plan/memory/live_ranges.py",
        "int(last_read[row]))\n            yield",
        "max(int(last_read[row]) - 1, int(made[row])))\n            yield",
        f"{_LIVES}::test_a_slot_is_taken_until_its_row_has_been_read",
    ),
    (
        "scratch of other bands",
        "pybuild/plan/memory/live_ranges.py",
        "when = _at(clock.times[step])",
        "when = _at(clock.times[step][:1])",
        _BYTES,
    ),
    (
        "a bound of pieces that begin anywhere",
        "pybuild/plan/memory/row_offsets.py",
        "when=p.when & ~odd)",
        "when=p.when)",
        f"{_LIVES}::test_the_search_ends_where_nothing_shorter_can_be",
    ),
    (
        "a distance that is one byte too short",
        "pybuild/plan/memory/row_offsets.py",
        "pairs = ((q.at - p.end, q.end - p.at)",
        "pairs = ((q.at - p.end, q.end - p.at - 1)",
        f"{_LIVES}::test_blocks_in_pieces_never_meet",
    ),
    (
        "inputs that the caller did not give up",
        "pybuild/plan/memory/live_ranges.py",
        "spent = root not in self.given or root in self.spent",
        "spent = True",
        _HAND,
    ),
)
