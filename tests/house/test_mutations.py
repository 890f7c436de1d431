"""Mutations by hand find their place, survivors have reasons, draws are by seed."""

from __future__ import annotations

import ast
import tomllib

import pytest

from tests.mutate import draw, handmade, python_ops, survivors
from tests.mutate.__main__ import chosen
from tests.mutate.mutation import ROOT, Mutation

FILE = "pybuild/plan/memory/row_offsets.py"


def _problems(entry: dict[str, str]) -> list[str]:
    found = [f"there is no {word}" for word in handmade.tests_exist(entry)]
    found += [f"unknown: {word}" for word in sorted(set(entry) - handmade.FIELDS)]
    try:
        mutation = handmade.place(entry)
    except (OSError, ValueError) as error:
        return [*found, str(error)]
    before = (ROOT / mutation.file).read_bytes()
    after = mutation.applied(before)
    if mutation.file.endswith(".py"):
        same = ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
    else:
        same = before == after
    return [*found, *(["it changes nothing"] if same else [])]


def test_every_mutation_by_hand_finds_one_node() -> None:
    entries = handmade.entries()
    wrong = {e["name"]: found for e in entries if (found := _problems(e))}
    assert not wrong
    assert len({e["name"] for e in entries}) == len(entries)


def test_lists_stay_short() -> None:
    """What an operator draws is not an entry: 2,500 lines in all."""
    lines = [p.read_text().count("\n") for p in handmade.FOLDER.iterdir() if p.suffix]
    assert sum(lines) <= 2500


def test_survivors_have_a_reason() -> None:
    for one in survivors.survivors().values():
        assert one.reason.startswith(survivors.REASONS), one
        assert one.operator in draw.OPERATORS or one.operator == handmade.OPERATOR, one


def test_rooms_are_drawn_in_turn_by_seed() -> None:
    sample = draw.drawn(2 * (len(draw.rooms()) + 1), 7)
    assert len({m.key for m in sample}) == len(sample)
    assert sample == draw.drawn(len(sample), 7)
    assert sample[:9] == draw.drawn(9, 7) != draw.drawn(9, 8)
    assert any(m.is_loop for m in sample) and any(m.name for m in sample)
    assert any(m.file.startswith("crt/src/") for m in sample)


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_drawn_can_be_parsed_and_differs(seed: int) -> None:
    for mutation in draw.drawn(60, seed):
        if mutation.is_loop or not mutation.file.endswith(".py"):
            continue
        before = (ROOT / mutation.file).read_bytes()
        after = ast.parse(mutation.applied(before))
        assert ast.dump(after) != ast.dump(ast.parse(before)), mutation


def test_which_are_meant() -> None:
    """A name, a list, an operator or a file; what nobody knows is refused."""
    first = handmade.lists()["kernels"][0]
    assert [m.name for m in chosen([first["name"]])] == [first["name"]]
    assert len([*chosen(["kernels"])]) == len(handmade.lists()["kernels"])
    of_file = [*chosen([FILE, "4", "1"])]
    assert {m.file for m in of_file} == {FILE} and len(of_file) == 4
    assert all(m.is_loop for m in chosen(["loop IR", "3"]))
    assert [*chosen(["--sample", "2", "5"])] == draw.drawn(2, 5)
    with pytest.raises(SystemExit, match="no such list"):
        chosen(["no such list"])


def test_a_survivor_is_known_when_its_lines_have_moved() -> None:
    source = (ROOT / FILE).read_text(encoding="utf-8")
    here = python_ops.mutations(FILE, source)
    moved = python_ops.mutations(FILE, '"""First."""\n\n\n' + source)
    assert {m.key for m in here} <= {m.key for m in moved}
    assert here[0].begin != moved[0].begin


def test_a_new_survivor_is_told_as_the_file_has_it() -> None:
    node = "f('a\\n', \"b\")"
    mutation = Mutation(FILE, "f", "drop_term", node, "x", 1, 1, 2)
    (told,) = tomllib.loads(survivors.entry(mutation))["survivor"]
    assert survivors.Survivor(**told).key == mutation.key
