"""Mutations of what is kept from run to run, for mutate.py: its five fields."""

_C = "tests/crt/test_crt.py::test_calls[test_state.c-gcc-]"
_UNIT = "tests/host/test_state.py"
_STREAM = "tests/passes/test_stream.py::test_"

KEPT = (
    (
        "what a variable holds at first",
        "pybuild/frontends/tflite/operators/variables.py",
        "            found.initial = inside.raw_constant(value)\n",
        "",
        "tests/frontends/tflite/test_tflite_variables.py",
    ),
    (
        "a variable that is read again",
        "pybuild/frontends/tflite/operators/variables.py",
        "    variable.now = value\n",
        "    variable.now = variable.now or value\n",
        "tests/frontends/tflite/test_tflite_variables.py",
    ),
    (
        "reset forgets",
        "crt/src/graph.c",
        "        g->model->state->forget(g);\n",
        "        ;\n",
        _C,
    ),
    (
        "the second piece of what was saved",
        "crt/src/state.c",
        "        crt_copy(memory(g, &state->kept[i]), at, state->kept[i].bytes);\n"
        "        at += state->kept[i].bytes;\n",
        "        crt_copy(memory(g, &state->kept[i]), at, state->kept[i].bytes);\n",
        _C,
    ),
    (
        "whose state it is",
        "crt/src/state.c",
        "    sum = crt_crc32(0, &state->id, sizeof state->id);\n"
        "    sum = crt_crc32(sum, at,",
        "    sum = crt_crc32(0, &state->bytes, sizeof state->id);\n"
        "    sum = crt_crc32(sum, at,",
        _C,
    ),
    (
        "a saved state that is damaged",
        "crt/src/state.c",
        "if (sum != wanted)",
        "if (wanted == 0u)",
        _C,
    ),
    (
        "the number of a slot that is half written",
        "docs/streams.md",
        "return s->again == ~s->number;",
        "return s->again != s->number;",
        "tests/resets/test_resets.py",
    ),
    (
        "samples that wait when a state is refused",
        "pybuild/emit/c/state.py",
        '"    if (error == CRT_OK)",',
        '"    if (m != NULL)",',
        "tests/features/test_chain.py",
    ),
    (
        "memory of state that others may use before its first reader",
        "pybuild/plan/buffers/sharing.py",
        "    for name in graph.state:\n        touch(name, -1)\n",
        "    for name in graph.state:\n",
        _UNIT,
    ),
    (
        "what is assigned lies in another state's memory",
        "pybuild/plan/buffers/sharing.py",
        "if made in self.assigned and view.root in self.graph.state:",
        "if made in self.assigned and not self.graph.state:",
        _UNIT,
    ),
    (
        "assignments wait for all readers",
        "pybuild/plan/schedule/order.py",
        "            if old in other.inputs or source in other.outputs:\n",
        "            if source in other.outputs:\n",
        _UNIT,
    ),
    (
        "what a state holds at first",
        "pybuild/plan/memory/persistent.py",
        'if state.initial.tobytes().strip(b"\\0") else None',
        "if False else None",
        _UNIT,
    ),
    (
        "the samples of a check begin anew",
        "pybuild/verify/check.py",
        "    if judge.graph.state:\n        net.reset()\n",
        "",
        _UNIT,
    ),
    (
        "rows of a stream that are kept",
        "pybuild/passes/stream.py",
        "        end = self._tail(name, most - flow.fresh)\n",
        "        end = kept\n",
        f"{_STREAM}streams_have_the_bits_of_the_whole_window",
    ),
    (
        "rows that depend on padding",
        "pybuild/passes/stream.py",
        "padded = min(rows, -(-(flow.padded + before) // stride))",
        "padded = min(rows, -(-flow.padded // stride))",
        f"{_STREAM}rows_that_depend_on_padding_are_refused",
    ),
    (
        "the first row that a window needs",
        "pybuild/passes/stream.py",
        "first = (rows - fresh) * stride - before\n",
        "first = (rows - fresh) * stride\n",
        f"{_STREAM}streams_have_the_bits_of_the_whole_window",
    ),
    (
        "strides that leave no whole rows",
        "pybuild/passes/stream.py",
        "if flow.fresh % stride and flow.fresh < flow.rows:",
        "if False:",
        f"{_STREAM}what_makes_no_sense_is_refused",
    ),
)
