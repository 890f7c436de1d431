"""Mutations of what counts and bounds on boards, for mutate.py: its five fields."""

_SIZES = "tests/boards/test_on_boards.py::test_counts_and_sizes[mps2-an386-gcc]"
_ALIKE = "tests/boards/test_on_boards.py::test_both_simulators_count_alike[mps2-an386]"
_TWO = "tests/boards/test_two_cores.py"
_OPTIONS = "tests/boards/test_board_options.py"

BOARDS = (
    (
        "the layer that instructions are counted for",
        "boards/host/count.h",
        "c->core[k].step = at / c->step_bytes;",
        "if (c->core[k].step == c->step_count) c->core[k].step = at / c->step_bytes;",
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
        "a jump's cycles",
        "boards/host/count.h",
        "uint64_t cycles = block->cycles + (follows ? 0 : block->taken);",
        "uint64_t cycles = block->cycles + (follows ? 9 * block->taken : 0);",
        "tests/boards/test_timings.py",
    ),
    (
        "the cycles of a push",
        "pybuild/boards/simulators/timings.py",
        "np.where(stack, 1 + _bits(h, 9), cycles)",
        "np.where(stack, 1 + _bits(h, 8), cycles)",
        "tests/boards/test_timings.py",
    ),
    (
        "calls in the bound of the stack",
        "pybuild/boards/firmware/stack.py",
        "calls |= tabled",
        "calls |= set()",
        _SIZES,
    ),
    (
        "the first core waits for all that it gave to the second",
        "boards/common/second.c",
        "while (queue.done != queue.given && !queue.faulted)",
        "while (queue.done == 0 && !queue.faulted)",
        _TWO,
    ),
    (
        "room in the queue between two cores",
        "boards/common/second.c",
        "if (queue.given - queue.done == JOBS)",
        "if (queue.given - queue.done == 2u * JOBS)",
        f"{_TWO}::test_more_jobs_than_the_queue_holds",
    ),
    (
        "a fault of the second core",
        "boards/common/second.c",
        "return queue.faulted != 0;\n}\n\nstatic int give",
        "return 0;\n}\n\nstatic int give",
        f"{_TWO}::test_a_fault_of_the_second_core_ends_the_run",
    ),
    (
        "the time of a core that waits",
        "boards/host/count.h",
        "count_later(&c->core[0], c->done_at);",
        "c->core[0].time += c->done_at;",
        f"{_TWO}::test_cores_work_at_the_same_time",
    ),
    (
        "the step that the second core works on",
        "boards/host/count.h",
        "c->core[1].step = c->job_step[c->taken % MOST_JOBS];",
        "c->core[1].step = c->step_count;",
        f"{_TWO}::test_the_same_bits_and_what_each_core_does",
    ),
    (
        "whose kernels are in the file of a device",
        "pybuild/emit/tables/device_kernels.py",
        "or len(devices) > 1 or 0 in devices",
        "or devices == {0}",
        "tests/boards/test_two_cores.py::test_what_both_run_is_there_once",
    ),
    (
        "lazy inputs of the runner",
        "boards/common/runner.c",
        "if ((info->flags & CRT_TENSOR_LAZY) != 0)\n        return crt_graph_bind",
        "if (0)\n        return crt_graph_bind",
        _OPTIONS,
    ),
    (
        "outputs of the runner that are on a device",
        "boards/common/runner.c",
        "if (data == 0) { /* it is on a device */",
        "if (0) {",
        _OPTIONS,
    ),
)
