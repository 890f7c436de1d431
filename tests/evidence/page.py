"""Writes the tables of docs/misra.md, then docs/requirements.md and what is filed of
both: `./dev evidence`. The branches of object code stay as they are where the compiler
is not theirs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.covered import branches
from tests.crt.test_crt import PROGRAMS
from tests.evidence import misra, nets, promises, quality
from tests.evidence.misra import DISAPPLIED, WRONG, Finding

PAGE = nets.ROOT / "docs" / "misra.md"


def counted(folder: Path) -> dict[str, list[Finding]]:
    """What is found in crt, and in the C of each network of the tree."""
    found = {"crt": misra.crt(nets.ROOT, folder / "runtime")}
    for name in nets.IN_TREE:
        found[name] = nets.of_net(name, folder / name)
    return found


def written(
    found: Mapping[str, Sequence[Finding]], sites: Sequence[branches.Site] = ()
) -> str:
    """The page, its tables anew."""
    text = PAGE.read_text()
    tables = {"counts": _counts(found), "disapplied": _disapplied()}
    if sites:
        tables["branches"] = branches.table(sites)
    for name, lines in tables.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        middle = "\n".join([begin, *lines, end])
        text = re.sub(f"{begin}.*?{end}", lambda _, m=middle: m, text, flags=re.S)
    return text


def _counts(found: Mapping[str, Sequence[Finding]]) -> list[str]:
    rules = sorted(
        {one.rule for all_ in found.values() for one in all_},
        key=lambda rule: [int(n) for n in rule.split(".")],
    )
    lines = [
        f"| rule | | dealt with | {' | '.join(found)} |",
        "|---|---|---|" + "---:|" * len(found),
    ]
    for rule in rules:
        kind = "advisory" if rule in misra.ADVISORY else "required"
        hows = sorted(
            {o.how for all_ in found.values() for o in all_ if o.rule == rule}
        )
        for how in hows:
            cells = [
                str(sum(o.rule == rule and o.how == how for o in all_) or "")
                for all_ in found.values()
            ]
            lines.append(f"| {rule} | {kind} | {_HOW[how]} | {' | '.join(cells)} |")
    sums = [str(len(misra.untagged(all_))) for all_ in found.values()]
    return [*lines, f"| required, without a tag | | | {' | '.join(sums)} |"]


_HOW = {"tag": "tag", "disapplied": "disapplied", "wrong": "checker is wrong", "": "-"}


def _disapplied() -> list[str]:
    lines = ["| advisory rule | why it is disapplied |", "|---|---|"]
    lines += [f"| {rule} | {why} |" for rule, why in DISAPPLIED.items()]
    lines += ["", "| rule | what the checker takes for a finding |", "|---|---|"]
    return lines + [f"| {rule} | it {why} |" for rule, _, why in WRONG]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        found = counted(Path(place))
        known = branches.is_counted_here()
        sites = branches.measured(PROGRAMS, Path(place)) if known else ()
        PAGE.write_text(written(found, sites))
    quality.FILE.write_text(quality.as_json())
    promises.write()
