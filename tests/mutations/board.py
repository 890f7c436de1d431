"""Mutations of what counts and bounds on boards, for mutate.py: its five fields."""

_STACK = "tests/bounds/test_stack.py -k integer"
_SIZES = "tests/boards/test_on_boards.py::test_counts_and_sizes[mps2-an386-gcc]"
_ALIKE = "tests/boards/test_on_boards.py::test_both_simulators_count_alike[mps2-an386]"
_TWO = "tests/boards/test_two_cores.py"
_OPTIONS = "tests/boards/test_board_options.py"
_OWNED = "tests/boards/test_owned_boards.py"
_CHIPS = "tests/chips/test_fit_chips.py"
_AVR = "tests/ops/test_small_int.py"

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
        "calls |= tabled - own if name in below else tabled",
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

OWNED = (
    (
        "the RAM of a board whose core alone is simulated",
        "pybuild/boards/simulators/stand_ins.py",
        "ram=Memory(other.ram.origin, board.ram.size),",
        "ram=other.ram,",
        f"{_OWNED}::test_its_memories_are_in_the_linker_script[nucleo-h743zi]",
    ),
    (
        "integers of tables that are functions' addresses",
        "pybuild/boards/firmware/stack.py",
        "            here[:] = False",
        "            pass",
        _STACK,
    ),
    (
        "counts of steps that are functions' addresses",
        "pybuild/boards/firmware/stack.py",
        "% (STEP_BYTES // 4) != 0] = False",
        "% (STEP_BYTES // 4) < 0] = False",
        _STACK,
    ),
    (
        "no pointer, where code is at address 0",
        "pybuild/boards/firmware/stack.py",
        "addresses = set(known.tolist()) - {0}",
        "addresses = set(known.tolist()) - {1}",
        f"{_OWNED}::test_the_core_gives_the_same_bits[ch32v203-evt]",
    ),
    (
        "a breakpoint that nobody answers",
        "boards/common/start_arm.c",
        "if (pc >= (uintptr_t)vectors &&",
        "if (pc == 0 && pc >= (uintptr_t)vectors &&",
        f"{_OWNED}::test_a_program_ends_well_where_nobody_answers",
    ),
    (
        "ties of floats on Xtensa",
        "boards/common/libgcc_xtensa.c",
        "(rest == SIGN && (fraction & 1u) != 0)",
        "rest == SIGN",
        f"{_OWNED}::test_functions_of_the_run_time_of_xtensa",
    ),
    (
        "what a chip lacks",
        "pybuild/chips/fit.py",
        "return max(self.needed - self.has, 0)",
        "return 0",
        f"{_CHIPS}::test_the_option_that_is_named_makes_it_fit",
    ),
    (
        "time on a chip",
        "pybuild/chips/fit.py",
        "seconds = cycles / chip.hz",
        "seconds = cycles / chip.start_hz",
        f"{_CHIPS}::test_one_chip_in_figures",
    ),
    (
        "constants in an ATmega2560's RAM",
        "pybuild/chips/fit.py",
        "needed += flash.weights + flash.tables",
        "needed += flash.tables",
        f"{_CHIPS}::test_an_atmega2560_beside_simavr",
    ),
    (
        "a fact that its core decides",
        "pybuild/targets/chip.py",
        '"cortex-m4": ("dsp",)',
        '"cortex-m4": ("dsp", "fpu")',
        "tests/boards/test_chip_facts.py::test_what_follows_from_the_core",
    ),
    (
        "a shift where int has 16 bits",
        "pybuild/emit/kernels/c.py",
        'if op == "<<" and isinstance(a, Const) and a.type in _WORDS:',
        'if op == "<" and isinstance(a, Const) and a.type in _WORDS:',
        f"{_AVR}::test_a_case_where_int_has_16_bits",
    ),
    (
        "the end of a sample",
        "examples/mlperf_tiny/main.c",
        "if (taken == expected)",
        "if (taken > expected)",
        "tests/boards/test_mlperf_tiny.py::test_accuracy_and_performance_behind_a_pty",
    ),
)
