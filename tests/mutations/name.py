"""Mutations of names and tables for people, for mutate.py: its five fields."""

_NAMES = "tests/test_short_names.py"
_TABLES = "tests/package/test_tables.py"
_RECORDS = "tests/test_records.py"
_CURVE = "tests/package/test_ram_curve.py"

NAMES = (
    (
        "a record that is equal to one of another class",
        "pybuild/records.py",
        "if other.__class__ is self.__class__:",
        "if isinstance(other, self.__class__):",
        _RECORDS,
    ),
    (
        "a field that is no part of the hash",
        "pybuild/records.py",
        "return field.compare if field.hash is None else field.hash",
        "return True",
        _RECORDS,
    ),
    (
        "a list that all instances share",
        "pybuild/records.py",
        'known[f"__of_{name}"], value = field.default_factory, f"__of_{name}()"',
        'known[f"__of_{name}"], value = field.default_factory(), f"__of_{name}"',
        _RECORDS,
    ),
    (
        "the layer that a fused name is about",
        "pybuild/short_names.py",
        "if not _END_OF_LAYER.search(text)",
        "if True",
        _NAMES,
    ),
    (
        "names that would be the same",
        "pybuild/short_names.py",
        "if count[form.lower()] == 1 and",
        "if",
        _NAMES,
    ),
    (
        "nodes of one layer of the file",
        "pybuild/ir/graph.py",
        "alone = not node.outputs or node.outputs == makes",
        "alone = True",
        _NAMES,
    ),
    (
        "short names of what options name",
        "pybuild/ir/graph.py",
        "return [full.get(text, text) for text in texts]",
        "return list(texts)",
        _NAMES,
    ),
    (
        "how many blocks a message names",
        "pybuild/plan/regions/regions.py",
        "NAMED = 6",
        "NAMED = 60",
        _NAMES,
    ),
    (
        "cut names that would be the same",
        "pybuild/package/grid.py",
        "if len(set(made)) == len(set(names)):",
        "if made:",
        _TABLES,
    ),
    (
        "labels on top of each other",
        "pybuild/package/curve_svg.py",
        "if inside and not any(map(_meets, self.taken, [box] * len(self.taken))):",
        "if inside:",
        _CURVE,
    ),
    (
        "the limit that asks for a plan",
        "pybuild/library.py",
        "return Point(ram, cost / fastest, arena, rows)",
        "return Point(ram, cost / fastest, ram, rows)",
        _CURVE,
    ),
    (
        "the width of a pipe",
        "pybuild/cli/tables.py",
        "        return None\n",
        "        return USUAL\n",
        _TABLES,
    ),
)
