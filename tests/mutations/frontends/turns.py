"""Mutations of loops that are found in what a file writes out, for mutate.py: its
fields."""

_TURNS = "tests/passes/test_turns.py"
_ALL = f"{_TURNS}::test_a_layer_and_all_it_gives"
_FIRST = f"{_TURNS}::test_a_first_step_from_zeros_that_was_folded"
_NONE = f"{_TURNS}::test_what_is_no_loop_stays"

TURNS = (
    (
        "steps that are put together from last to first",
        "pybuild/passes/turns/roll.py",
        "way = (count - 1, -1) if back else (0, 1)",
        "way = (0, 1)",
        _ALL,
    ),
    (
        "a folded constant that is another",
        "pybuild/passes/turns/first.py",
        "if not np.array_equal(made,",
        "if False and not np.array_equal(made,",
        _FIRST,
    ),
    (
        "the step before the first, of which row",
        "pybuild/passes/turns/first.py",
        "return replace(source, parts=(first - step, step))",
        "return source",
        _FIRST,
    ),
    (
        "loops with replaceable weights",
        "pybuild/passes/turns/find.py",
        "if any(name in self.facts.graph.parameters for name in some[0].inputs):",
        "if False:",
        _NONE,
    ),
    (
        "what a turn hands to the next",
        "pybuild/kernels/operators/repeat.py",
        "            self._copied(self.place(name), self.places[inner], tensor, turn)",
        "            pass",
        _ALL,
    ),
    (
        "ranges that are not those of all steps",
        "pybuild/quantisation/scheme.py",
        "            groups.join(first, name)",
        "            pass",
        "tests/quantisation/test_quantised_loops.py",
    ),
    (
        "a product's zero points",
        "pybuild/kernels/any_type/product8.py",
        "k.store(self.totals, first + i, both - total * self.a_zero)",
        "k.store(self.totals, first + i, const(0) - total * self.a_zero)",
        "tests/ops/test_products.py",
    ),
    (
        "bytes of a word in another order",
        "pybuild/kernels/dsp/product8.py",
        "for half, take in enumerate((EVEN_BYTES, ODD_BYTES)):",
        "for half, take in enumerate((ODD_BYTES, EVEN_BYTES)):",
        "tests/ops/test_products.py",
    ),
    (
        "no zeros behind a row that is copied",
        "pybuild/kernels/mve/product.py",
        "k.store(to, d, ALL4(const(0)))",
        "k.store(to, d, ALL4(const(1)))",
        "tests/ops/test_products.py",
    ),
    (
        "the second of two rows is copied over the first",
        "pybuild/kernels/mve/product.py",
        "offset(self.copy, self.step * index)",
        "offset(self.copy, self.step * 0)",
        "tests/ops/test_products.py",
    ),
    (
        "tables of functions of two tensors",
        "pybuild/passes/lookups/tables.py",
        "if len(source) != 1 or node.device:",
        "if node.device:",
        "tests/passes/test_tables.py",
    ),
    (
        "scratch that is still needed",
        "pybuild/kernels/operators/repeat.py",
        "if born <= last and first <= dies and begin < at + size and at < end:",
        "if first <= born <= last and begin < at + size and at < end:",
        _ALL,
    ),
)
