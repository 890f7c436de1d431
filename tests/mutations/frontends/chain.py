"""Mutations of chains of samples, and of decisions, for mutate.py: its five fields."""

_CHAIN = "tests/features/test_chain.py"
_DECIDE = "tests/ops/test_decide.py::test_what_is_heard"

CHAIN = (
    (
        "a piece that is longer than a run",
        "pybuild/emit/c/samples.py",
        "        if (part > count) {{\n            part = count;\n        }}\n",
        "        part = count;\n",
        f"{_CHAIN}::test_pieces_in_c[gcc]",
    ),
    (
        "samples that wait, after a reset",
        "pybuild/emit/c/model.py",
        "        *forgotten(tables),\n",
        "",
        f"{_CHAIN}::test_pieces_in_c[gcc]",
    ),
    (
        "the state of features of a run before",
        "pybuild/features/chain.py",
        "            self.state[name] = State(last[name], kept.initial)\n",
        "            self.state[name] = State(kept.next, kept.initial)\n",
        f"{_CHAIN}::test_three_rows_at_once_are_each_third_row",
    ),
    (
        "features round as in training",
        "pybuild/passes/legalise.py",
        'if node.attrs.get("fixed", False):',
        'if node.attrs.get("mixed", False):',
        f"{_CHAIN}::test_features_are_those_of_training_whatever_rounds_in_the_net",
    ),
    (
        "a half of an average",
        "pybuild/kernels/portable/decide.py",
        "return (above * 2 + count) // (count * 2) + kind.low",
        "return (above * 2 + count - 1) // (count * 2) + kind.low",
        f"{_DECIDE}[int8-smooth]",
    ),
    (
        "the first of equal scores",
        "pybuild/kernels/portable/decide.py",
        "with k.when(score > most):",
        "with k.when(score >= most):",
        f"{_DECIDE}[int8-plain]",
    ),
    (
        "a score at the release",
        "pybuild/kernels/portable/decide.py",
        'c.score(held) >= c.limit("low")',
        'c.score(held) > c.limit("low")',
        f"{_DECIDE}[int8-smooth]",
    ),
    (
        "how long another word waits",
        "pybuild/kernels/portable/decide.py",
        'w.number("runs") + 1',
        'w.number("runs")',
        f"{_DECIDE}[int8-late]",
    ),
)
