"""Each mutation of tests/mutate.py still finds its place, and its tests exist."""

from __future__ import annotations

from pathlib import Path

from tests.mutate import LISTS, MUTATIONS, Mutation, chosen, drawn, main
from tests.toolchains import ROOT


def _problems(mutation: Mutation) -> list[str]:
    count = (ROOT / mutation.file).read_text().count(mutation.old)
    found = [] if count == 1 else [f"its place is found {count} times"]
    for word in mutation.tests.split():
        file = word.partition("::")[0]
        if file.startswith("tests/") and not (ROOT / Path(file)).exists():
            found.append(f"there is no {file}")
    if mutation.old == mutation.new:
        found.append("it changes nothing")
    return found


def test_every_mutation_has_its_place() -> None:
    wrong = {m.name: found for m in MUTATIONS if (found := _problems(m))}
    assert not wrong
    assert len({m.name for m in MUTATIONS}) == len(MUTATIONS)


def test_a_sample_has_as_many_of_each_list() -> None:
    names = {m.name: name for name, found in LISTS.items() for m in found}
    sample = drawn(2 * len(LISTS), 7)
    lists = [names[m.name] for m in sample]
    assert set(lists[: len(LISTS)]) == set(LISTS) == set(lists[len(LISTS) :])
    assert len(set(sample)) == len(sample)
    assert sample == drawn(2 * len(LISTS), 7) != drawn(2 * len(LISTS), 8)


def test_a_list_is_chosen_by_its_name() -> None:
    """Or by its file's; what nobody knows breaks nothing, and is told."""
    (ecosystems,) = (v for k, v in LISTS.items() if k.endswith(".ECOSYSTEMS"))
    assert chosen(["ecosystems"]) == [*ecosystems]
    boards = [v for k, v in LISTS.items() if ".board." in k]
    assert chosen(["board"]) == [m for values in boards for m in values]
    assert chosen([ecosystems[0].name]) == [ecosystems[0]]
    assert chosen([]) == [*MUTATIONS] and main(["no such list"]) == 1
