"""What branches side by side would give two cores, beside slices, by the same estimate:
`python -m tests.cores.branches`, of docs/two-cores.md. Nets that have branches.

A region is a set of steps of which each has one that it neither needs nor feeds. There
two cores may compute whole steps at the same time, in the best order that a list
schedule finds; they meet where it begins and where it ends, and nowhere in between.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pybuild
from pybuild.plan.plan import Plan
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.cores.nets import twigs
from tests.fieldnets.nets import net
from tests.toolchains import ROOT

_MEET, _RUN = 115, 110  # pybuild/cores/core_plan.py
_ZIP = ROOT / "tests/exported/litert.zip"
_ZOO = (
    "bert", "conformer", "lstm_bidirectional", "mobilenetv3", "shufflenet", "ssd",
    "u_net_bilinear", "vit", "yolo",
)  # fmt: skip
_FIELD = ("squeezenet_128", "yolo_128", "unet_64")


@dataclass(frozen=True)
class Side:
    """Estimated instructions from begin to end.

    slices    as they are built; one core's, where they do not pay
    branches  whole steps side by side, no slices
    mixed     of each region what is less
    bound     no order of slices and branches could take less: both cores are always
              busy in a region, and its steps meet once
    meetings  of slices; regions: where steps could be side by side
    """

    name: str
    one: int
    slices: int
    branches: int
    mixed: int
    bound: int
    meetings: int
    regions: int

    def __str__(self) -> str:
        shares = (self.slices, self.branches, self.mixed, self.bound)
        cells = [f"{self.one:,}", *(f"{n / self.one:.3f}" for n in shares)]
        return f"| {' | '.join([self.name, *cells])} | {self.meetings:,} |"


def _costs(plan: Plan, target: str) -> dict[str, int]:
    """Of each step with a kernel, by what it writes."""
    return {
        s.node.output: price(
            replace(s.candidate, finish=None), TARGETS[target]
        ).instructions
        for s in plan.steps
        if s.candidate.func is not None
    }


def _needs(plan: Plan) -> dict[str, set[str]]:
    """What each tensor needs, through others and through views, too."""
    found: dict[str, set[str]] = {}
    for node in plan.graph.nodes:
        mine: set[str] = set()
        for name in node.inputs:
            if name in found:
                mine |= found[name] | {name}
        for name in node.outputs:
            found[name] = mine
    return found


def regions(needs: Mapping[str, set[str]], steps: Sequence[str]) -> list[list[str]]:
    """The sets of steps that may be side by side."""
    left, found = list(steps), []
    while left:
        group, todo = [], [left.pop(0)]
        while todo:
            one = todo.pop()
            group.append(one)
            near = [o for o in left if o not in needs[one] and one not in needs[o]]
            left = [o for o in left if o not in near]
            todo += near
        if len(group) > 1:
            found.append([s for s in steps if s in group])
    return found


def schedule(
    region: Sequence[str], needs: Mapping[str, set[str]], costs: Mapping[str, int]
) -> int:
    """The time that two cores take for these steps: the longest way first."""
    longest: dict[str, int] = {}
    for one in reversed(region):
        later = [longest[o] for o in region if o in longest and one in needs[o]]
        longest[one] = costs[one] + max(later, default=0)
    free, done, left = [0, 0], dict[str, int](), list(region)
    while left:
        core = free.index(min(free))
        ready = [o for o in left if all(n in done for n in needs[o] if n in region)]
        one = max(ready, key=longest.__getitem__)
        begin = max([free[core], *(done[n] for n in needs[one] if n in done)])
        free[core] = done[one] = begin + costs[one]
        left.remove(one)
    return max(done.values())


def side_by_side(name: str, model: pybuild.Model, target: str) -> Side:
    one, two = (model.build(target=target, cores=n) for n in (1, 2))
    costs, needs = _costs(one.plan, target), _needs(one.plan)
    assert two.spread is not None
    shared = two.spread.shared
    spans = {s.node.output: s.span for s in shared} or costs
    alone, fixed = sum(costs.values()), _RUN if shared else 0
    slices = branches = mixed = bound = 0
    found = regions(needs, list(costs))
    for region in found:
        inside = sum(spans.get(o, costs[o]) for o in region)
        beside = schedule(region, needs, costs) + 2 * _MEET
        total = sum(costs[o] for o in region)
        slices, branches = slices + inside, branches + min(beside, total)
        mixed += min(inside, beside)
        bound += min(inside, beside, total // 2 + 2 * _MEET)
    apart = {o for region in found for o in region}
    rest = sum(spans.get(o, costs[o]) for o in costs if o not in apart)
    plain = sum(costs[o] for o in costs if o not in apart)
    return Side(
        name, alone, min(slices + rest + fixed, alone), branches + plain + _RUN,
        min(mixed + rest + _RUN, alone), bound + rest + _RUN,
        sum(s.meetings for s in shared), len(found),
    )  # fmt: skip


def models(names: Sequence[str]) -> dict[str, pybuild.Model]:
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = Path(folder) / f"{name}.tflite"
            if name.startswith("twigs"):
                made[name] = twigs(*map(int, name.split("_")[1:]))
                continue
            if name in _FIELD:
                path.write_bytes(net(name).file)
            else:
                with zipfile.ZipFile(_ZIP) as kept:
                    path.write_bytes(kept.read(f"{name}.int8_channel.tflite"))
            made[name] = pybuild.load(path)
    return made


_TWIGS = ("twigs_2_4", "twigs_4_4", "twigs_4_8", "twigs_8_8", "twigs_4_16")

if __name__ == "__main__":
    TARGET, *NAMES = sys.argv[1:] or ("cortex-m33",)
    for NAME, MODEL in models(NAMES or (*_TWIGS, *_ZOO, *_FIELD)).items():
        print(side_by_side(NAME, MODEL, TARGET), flush=True)
