"""Mutations of the front end of torch.export's programs, for mutate.py: its five
fields.
"""

_HERE = "pybuild/frontends/torch"
_ONE = "tests/frontends/torch/test_operators.py"
_WHOLE = "tests/frontends/torch/test_exported_programs.py::test_"

EXPORTED = (
    (
        "what an exported copy reads after its source was written",
        f"{_HERE}/operators/writer.py",
        "return self.aliases.get(name, name)",
        "while name in self.aliases:\n            name = self.aliases[name]\n"
        "        return name",
        f"{_ONE}::test_a_copy_keeps_what_it_was",
    ),
    (
        "the place of an exported part that is written",
        f"{_HERE}/operators/in_place.py",
        'start = int(view.get("index")) % size',
        'start = int(view.get("index")) % size - 1',
        f"{_ONE}::test_parts_of_a_tensor_are_written",
    ),
    (
        "an exported view that may be a copy",
        f"{_HERE}/operators/in_place.py",
        "views |= set(one.outputs)",
        "pass",
        f"{_ONE}::test_another_view_that_is_read_afterwards_is_refused",
    ),
    (
        "an exported buffer that add_ writes",
        f"{_HERE}/load.py",
        "changed & program.weights.keys()",
        "set()",
        f"{_ONE}::test_a_buffer_that_is_written_by_any_operator_is_state",
    ),
    (
        "where exported averages begin",
        f"{_HERE}/operators/pools.py",
        "begin, end = i * size // count,",
        "begin, end = -(-i * size // count),",
        f"{_ONE}::test_an_operator",
    ),
    (
        "the less of two exported tensors",
        f"{_HERE}/operators/moves.py",
        "if isinstance(other, Ref):  # of two",
        "if False:  # of two",
        f"{_ONE}::test_an_operator",
    ),
    (
        "names inside of exported parts",
        f"{_HERE}/reader/inside.py",
        "names.setdefault(name, first + name)",
        "names.setdefault(name, name)",
        f"{_WHOLE}a_part_with_a_graph_of_its_own_is_opened",
    ),
    (
        "types that autocast chooses",
        f"{_HERE}/reader/inside.py",
        'given[2].get("as_bool")',
        'given[3].get("as_bool", 0) and 0',
        f"{_WHOLE}types_that_autocast_chooses_are_refused",
    ),
)
