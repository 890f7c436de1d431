"""Mutations of the proofs of bounds, for mutate.py: its five fields."""

_WALK = "tests/bounds/test_walk.py"
_STACK = "tests/bounds/test_stack.py"
_TIMING = "tests/bounds/test_timing.py"
_WORST = "tests/boards/test_worst_case.py"
_LINEAR = "tests/bounds/test_linear.py"

BOUNDS = (
    (
        "the last turn of a loop",
        "pybuild/bounds/loops.py",
        "last = most if math.isinf(most) else (most - 1) // step",
        "last = most if math.isinf(most) else most // step",
        f"{_WALK}::test_what_a_kernel_needs_is_found_to_the_byte",
    ),
    (
        "the end of a load",
        "pybuild/bounds/walk.py",
        "end = most + size if least <= most else least",
        "end = most if least <= most else least",
        f"{_WALK}::test_what_a_kernel_needs_is_found_to_the_byte",
    ),
    (
        "what a condition says where it fails",
        "pybuild/bounds/arithmetic.py",
        "return Truth((below,), (most,))",
        "return Truth((below,), (above,))",
        f"{_LINEAR}::test_conditions_are_what_holds_where_they_hold",
    ),
    (
        "a load before its memory",
        "pybuild/bounds/values.py",
        "            self.least >= 0 and self.end <= self.memory.bytes\n",
        "            self.end <= self.memory.bytes\n",
        f"{_WALK}::test_before_the_first_byte",
    ),
    (
        "code behind a jump is a way into a loop",
        "pybuild/boards/firmware/longest.py",
        "_groups({code.start}, code.after)",
        "_groups(code.sizes, code.after)",
        _WORST,
    ),
    (
        "a ring that was never whole",
        "pybuild/bounds/walk.py",
        "                if reached == span:\n",
        "                if reached:\n",
        f"{_WALK}::test_what_a_kernel_needs_is_found_to_the_byte",
    ),
    (
        "a fact of one place as a fact of another",
        "pybuild/bounds/linear.py",
        "        found = Facts()\n",
        "        found = self\n",
        f"{_LINEAR}::test_conditions_are_what_holds_where_they_hold",
    ),
    (
        "a division of what may be negative",
        "pybuild/bounds/arithmetic.py",
        "        facts.add(rest.plus(Linear(by - 1)))\n",
        "        facts.add(rest)\n",
        f"{_LINEAR}::test_operations_hold_each_result",
    ),
    (
        "a choice that is thought to go the shorter way",
        "pybuild/boards/firmware/longest.py",
        "max((longest[n] for n in follows), default=0)",
        "min((longest[n] for n in follows), default=0)",
        f"{_WORST}::test_loops_are_as_counted_and_tests_are_taken_the_longer_way",
    ),
    (
        "instructions that IT leaves out as ends of a function",
        "pybuild/boards/firmware/branches.py",
        "        if conditional:",
        "        if conditional > 9:",
        f"{_WORST}::test_what_stands_in_an_it_block_may_do_nothing",
    ),
    (
        "a number that a test of data has set is no data",
        "pybuild/bounds/timing.py",
        "        elif decided or self.asks(value):\n",
        "        elif self.asks(value):\n",
        f"{_TIMING}::test_what_asks_for_data",
    ),
    (
        "a store whose place data says is as good as another",
        "pybuild/bounds/timing.py",
        "self.places += self.asks(index) or self.moves(pointer)",
        "self.places += self.moves(pointer)",
        f"{_TIMING}::test_what_asks_for_data",
    ),
    (
        "a chain of calls begins again at each function",
        "pybuild/bounds/stack.py",
        "(own, *most.frames)",
        "(own,)",
        f"{_STACK}::test_the_deepest_chain_is_not_that_of_the_largest_frame",
    ),
    (
        "an object's kernels call nothing",
        "pybuild/boards/firmware/object_stack.py",
        "            function.calls.add(_named(sections, where))",
        "            pass",
        f"{_STACK}::test_an_objects_kernels_take_what_they_take_in_a_program",
    ),
)
