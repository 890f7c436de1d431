"""The order of bands in lock step: crt goes from a maker to the link that asks for its
rows, the planner's band_times always from the last step; both must come to the same."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from pybuild.plan.schedule.lock_step import Link, band_times, with_askers
from tests.crt.test_crt import INCLUDES, SANITIZE
from tests.toolchains import STRICT, require, run, runtime

HERE = Path(__file__).resolve().parent
NETS = 50


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    made = tmp_path_factory.mktemp("order") / "order"
    flags = [*STRICT, *SANITIZE]
    files = [*runtime("gcc", *flags), HERE / "order.c"]
    run(["gcc", *flags, *INCLUDES, *files, "-o", made])
    return made


def _net(seed: int) -> tuple[list[int], list[Link]]:
    """A chain of windows; some read a tensor from further before, too, whose rows last
    as long, and some makers have rows that nobody reads."""
    chance = random.Random(seed)
    rows = [chance.randint(1, 40)]  # of what each step makes
    bands, made = [0], [chance.choice((1, 1, 2, 3))]
    links = list[Link]()
    for step in range(2, chance.randint(3, 14)):
        window, stride = chance.randint(1, 5), chance.choice((1, 1, 1, 2))
        pad = chance.randint(0, window // 2)
        makers = {step - 1}
        if step > 2 and chance.random() < 0.4:
            makers.add(chance.randint(1, step - 2))
        least = min(rows[maker - 1] for maker in makers)
        count = max(1, (least - chance.choice((0, 0, 1))) // stride)
        each = chance.choice((1, 1, 1, 2)) if count > 1 else 1
        for maker in sorted(makers, reverse=True):
            one = (stride * each, window + stride * (each - 1) - pad)
            links.append(Link(step, maker, *one, rows[maker - 1], made[maker - 1]))
        rows.append(count)
        made.append(each)
        bands.append(-(-count // each))
    bands[0] = -(-rows[0] // made[0])
    order = sorted(links, key=lambda link: (-link.reader, -link.maker))
    return bands, order


def _in_c(program: Path, bands: list[int], links: list[Link]) -> list[int]:
    numbers = [len(bands), len(links), *bands, *(n for link in links for n in link)]
    text = " ".join(map(str, numbers))
    done = subprocess.run([program], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def _wanted(bands: list[int], links: list[Link]) -> list[int]:
    times = band_times(bands, links)
    when = {time: step for step, own in enumerate(times, 1) for time in own}
    return [when[time] for time in range(len(when))]


def test_crt_keeps_to_the_order_of_the_plan(program: Path) -> None:
    asked = 0
    for seed in range(NETS):
        bands, links = _net(seed)
        made = with_askers(bands, links)
        asked += sum(link.asker > 0 for link in made)
        assert _in_c(program, bands, made) == _wanted(bands, links), seed
        assert _in_c(program, bands, links) == _wanted(bands, links), seed
    assert asked > 2 * NETS  # else nothing was tried


def test_a_step_that_two_ask_is_looked_for(program: Path) -> None:
    """Rows that step 1 makes are asked for by step 2 and, of its last ones, by 3."""
    links = [Link(3, 2, 1, 1, 4, 1), Link(3, 1, 3, 3, 12, 1), Link(2, 1, 1, 1, 4, 1)]
    made = with_askers([12, 4, 4], links)
    assert [link.asker for link in made] == [0, 0, 1]
    assert _in_c(program, [12, 4, 4], made) == _wanted([12, 4, 4], links)


def test_a_step_that_nobody_asks_for_its_last_bands() -> None:
    links = [Link(3, 2, 1, 1, 3, 1), Link(2, 1, 1, 1, 9, 1)]
    assert [link.asker for link in with_askers([9, 5, 3], links)] == [0, 0]
    assert [link.asker for link in with_askers([9, 3, 3], links)] == [0, 1]
