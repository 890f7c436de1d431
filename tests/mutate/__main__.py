"""Breaks the code in one place at a time; some test must notice each: `./dev mutate`.

Exit status 1 if a mutation survives that tests/mutations/survivors.toml does not name.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.concern import concern, source
from tests.mutate import draw, handmade, survivors, tree, watching
from tests.mutate.mutation import ROOT, Mutation

USAGE = """./dev mutate
  (nothing)              20 that are drawn, with seed 0
  --sample N [SEED]      N that are drawn: of each room of the source in turn, of loop
                         IR, and of those by hand
  NAME...                by hand: of this name or list (kernels)
  FILE|ROOM [N [SEED]]   N that are drawn there, 10 if not said
  "loop IR" [N [SEED]]   N of what kernels' authors write
  OPERATOR               all of an operator: error_return
  --quick-sample N [SEED]  which share of N `./dev test --quick` notices
"""
SHARE = 0.9  # of a sample that the quick tests notice at least
SURVIVED, CAUGHT, KNOWN, SKIPPED = "SURVIVED", "caught  ", "known   ", "not run "
USUAL, OF_A_FILE = 20, 10  # that are drawn


@functools.cache
def _passes(tests: str) -> bool:
    """Whether the tests of a mutation by hand pass without it."""
    with tree.mutated(None) as copy:
        return tree.run(copy, *tests.split()).status == tree.PASSED


def notice(mutation: Mutation) -> str:
    """The test that fails with it; "": none does; SKIPPED: no kernel has its node."""
    if mutation.tests and not _passes(mutation.tests):
        raise SystemExit(f"without a mutation, too, tests fail: {mutation.tests}")
    tests = watching.tests_of(mutation)
    with tree.mutated(mutation) as copy:
        for files, seconds in tests:
            within = 10 * seconds + 120 if seconds else tree.LONGEST
            quick = [] if mutation.tests else [*tree.QUICK, watching.order(mutation)]
            outcome = tree.run(copy, *quick, *files.split(), within=within)
            if outcome.noticed:
                return outcome.by
        if not copy.is_changed:
            return SKIPPED
    return ""


def report(mutations: Iterable[Mutation]) -> int:
    """Says of each whether a test notices it; 1 if one survives that is not known."""
    left: list[Mutation] = []
    count = known = skipped = 0
    for mutation in mutations:
        by = notice(mutation)
        why = survivors.reason(mutation)
        count += 1
        skipped += by == SKIPPED
        known += not by and bool(why)
        if by == SKIPPED:
            print(f"{SKIPPED}  {mutation}  no such node is built", flush=True)
        elif by:
            print(f"{CAUGHT}  {mutation}  {by}", flush=True)
        else:
            left += [] if why else [mutation]
            print(f"{KNOWN if why else SURVIVED}  {mutation}  {why}", flush=True)
    for mutation in left:
        print(f"\n{survivors.entry(mutation)}", end="")
    caught = count - skipped - known - len(left)
    print(f"{caught} caught, {known} known to survive, {skipped} not run", end=", ")
    print(f"{len(left)} survived")
    return 1 if left else 0


# ---- what the quick tests notice --------------------------------------------


def _noticed_by(mutation: Mutation, copy: tree.Tree) -> tuple[tree.Outcome, str]:
    """The outcome in a tree with the mutation, and the order. What watches the place is
    first, then what is near, then all."""
    near = concern([ROOT / mutation.file])
    files = [path.relative_to(ROOT).as_posix() for path in near.files]
    order = "--near=" + "\n".join(near.order)
    for some in (mutation.tests.split(), ["-n2", order, *files], ["-n2"]):
        if some:
            outcome = tree.run(copy, *tree.QUICK, *some)
            if outcome.noticed:
                break
    return outcome, order


def quick_sample(number: int, seed: int = 0) -> int:
    """Says of each mutation whether the quick tests notice it; 1 if too few are. What
    fails without a mutation, too, has noticed nothing; those that are known to be equal
    to the original, and those of loop IR that no kernel has, are drawn again."""
    tested = caught = 0
    with tree.mutated(None) as as_it_is:
        for mutation in draw.drawn(4 * number, seed):
            if survivors.reason(mutation).startswith("equal"):
                continue
            with tree.mutated(mutation) as copy:
                outcome, near = _noticed_by(mutation, copy)
                if not outcome.noticed and not copy.is_changed:
                    continue
            by = outcome.by if outcome.noticed else ""
            if "::" in by and tree.run(as_it_is, *tree.QUICK, near, by).noticed:
                print(f"without a mutation, too: {by}", flush=True)
                return 1
            tested, caught = tested + 1, caught + bool(by)
            print(f"{CAUGHT if by else SURVIVED}  {mutation}  {by}", flush=True)
            if tested == number:
                break
    print(f"{caught} of {tested} are caught by the quick tests")
    return 0 if caught >= SHARE * tested else 1


# ---- which are meant --------------------------------------------------------


def chosen(words: list[str]) -> Iterator[Mutation]:
    """Those that the words of the command line mean. Errors: SystemExit."""
    numbers = [int(word) for word in words if word.isdigit()]
    names = [word for word in words if not word.isdigit() and word != "--sample"]
    if not names:
        return iter(draw.drawn(*_number_and_seed(numbers, USUAL)))
    found: list[Mutation] = []
    for name in names:
        hand = [e for stem, es in handmade.lists().items() for e in es
                if name in (stem, e["name"])]  # fmt: skip
        place = source(name)
        if hand:
            found += map(handmade.place, hand)
        elif name in draw.OPERATORS:
            found += draw.every(name)
        elif name == draw.LOOP:
            found += draw.drawn_of_loops(*_number_and_seed(numbers, OF_A_FILE))
        elif place is not None and (files := _sources(place)):
            found += draw.drawn_of(files, *_number_and_seed(numbers, OF_A_FILE))
        else:
            raise SystemExit(f"there is no mutation, list, operator or source {name}")
    return iter(found)


def _number_and_seed(numbers: list[int], usual: int) -> tuple[int, int]:
    return (numbers[0] if numbers else usual, numbers[1] if len(numbers) > 1 else 0)


def _sources(place: Path) -> list[Path]:
    """Python and C of a file or room."""
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    return [path for path in files if path.suffix in (".py", ".c", ".h")]


def main(words: list[str]) -> int:
    if {"-h", "--help"} & {*words}:
        print(USAGE, end="")
        return 0
    if words[:1] == ["--quick-sample"]:
        return quick_sample(*map(int, words[1:]))
    return report(chosen(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
