"""Mutations of layers in lock step, of their plans, and of inputs in rows, for
mutate.py: its five fields."""

_C = "tests/crt/test_crt.py::test_calls[test_push.c-gcc-]"
_BYTES = "tests/plan/test_plan_bytes.py::test_rows_are_there_until_they_are_read"
_BOUND = "tests/plan/test_stages.py::test_bounds_of_a_chain_by_hand"

PUSHED = (
    (
        "the slot of a pushed row",
        "crt/src/push.c",
        "[f.step - 1u]++ % f.rows->ring",
        "[f.step - 1u]++ % f.rows->rows",
        "tests/plan/test_row_input.py",
    ),
    (
        "rows that are too many",
        "crt/src/push.c",
        "if (count > f.rows->count - done(g, &f, f.step))",
        "if (count > f.rows->count)",
        _C,
    ),
    (
        "stages after the pushed one",
        "crt/src/push.c",
        "(uint32_t)pushed + 1u;",
        "(uint32_t)pushed + 2u;",
        "tests/plan/test_row_input.py",
    ),
    (
        "an input that a stage of its own would hold whole",
        "pybuild/plan/schedule/partition.py",
        "if self.nodes[end - 1][0].op == PUSH:",
        "if self.nodes[end - 1][0].op == 'none':",
        "tests/plan/test_row_input.py",
    ),
    (
        "a board's memory that ends within a page",
        "pybuild/boards/simulators/unicorn.py",
        "if at + size > end and not self.outside:",
        "if at > end and not self.outside:",
        "tests/boards/test_pushed_rows.py",
    ),
    (
        "rows of other inputs of a bench",
        "pybuild/host/trace.py",
        "        net.push_rows(name, inputs[name])\n",
        "        net.push_rows(name, inputs[name][:, :1])\n",
        "tests/installed/test_cli.py",
    ),
    (
        "where the look at the links goes on",
        "crt/src/lockstep.c",
        "step = from->reader;",
        "step = from->maker;",
        "tests/plan/test_row_input.py",
    ),
    (
        "kernels at a price among rows",
        "pybuild/plan/stage_kernels.py",
        "number = best.get(node.output)",
        "number = best.get(node.op)",
        "tests/select/test_choose.py",
    ),
    (
        "the length of a ring",
        "pybuild/plan/schedule/lock_step.py",
        "return int((newest - oldest).max())",
        "return max(int((newest - oldest).max()) - 1, 1)",
        "tests/plan/test_row_input.py -x",
    ),
    (
        "the row of padding of a ring",
        "crt/src/run.c",
        "*p = crt_unconst(r->pad_row);",
        "*p = row0;",
        _C,
    ),
    (
        "where a row counter begins",
        "crt/src/lockstep.c",
        "done[step] = 0;",
        "done[step] = (uint16_t)(step == 1u);",
        _C,
    ),
    (
        "whose rows are wanted",
        "crt/src/push.c",
        "return step == f.step ? (int)(rows - (int32_t)done(g, &f, step)) : 0;",
        "return (int)(rows - (int32_t)done(g, &f, step));",
        _C,
    ),
    (
        "rows that two readings want",
        "crt/src/push.c",
        "need > *rows) {",
        "need < 0) {",
        _C,
    ),
    (
        "a longer row that a chain of rows began with",
        "pybuild/plan/schedule/lock_step.py",
        "if any(life.at + life.row_bytes > end for life in chain):",
        "if any(life.at > end for life in chain):",
        _BYTES,
    ),
    (
        "the memory of row counters",
        "pybuild/plan/schedule/stages.py",
        "COUNTER_BYTES * most",
        "COUNTER_BYTES",
        _BYTES,
    ),
    (
        "what is read after it was written over",
        "pybuild/plan/buffers/sharing.py",
        "if life.last == index and owner",
        "if life.last >= index and owner",
        _BYTES,
    ),
    (
        "the order that needs the fewest bytes",
        "pybuild/plan/choice.py",
        "if found < least:",
        "if found > least:",
        "tests/plan/test_stages.py",
    ),
    (
        "the row that is written in a bound",
        "pybuild/plan/schedule/lower_bound.py",
        "scratch + row)",
        "scratch)",
        _BOUND,
    ),
    (
        "pushed rows pay for bytes that are there anyway",
        "pybuild/plan/choice.py",
        "most >= anyway().arena_bytes",
        "most >= 1 << 40",
        "tests/plan/test_price_of_rows.py -k pushed",
    ),
)
