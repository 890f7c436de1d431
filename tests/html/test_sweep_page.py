"""The page of a sweep: its numbers are the table's, its front is Python's, filters and
choices change both, and each point is a link to a report that opens."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pybuild
from tests.html.browser import browser, opened, settled, table, violations
from tests.sweeps.networks import network
from tests.toolchains import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"


def _figures(row: Mapping[str, Any]) -> list[str]:
    names = ("ram", "flash", "instructions", "cycles")
    return [row["model"], *(f"{row[name]:,}" for name in names)]


def _shown(driver: Any) -> list[list[str]]:
    """Model and figures of the rows of the table; whether each is Pareto-optimal."""
    cells = table(driver, "builds")
    return [[one[0], *one[-6:-2], one[-2]] for one in cells]


def _press(driver: Any, group: str, label: str) -> None:
    settled(
        driver,
        "[...document.querySelectorAll('fieldset')]"
        f".find(f => f.querySelector('legend').textContent === '{group}')"
        ".querySelectorAll('label').forEach(l => {"
        f" if (l.textContent.trim() === '{label}')"
        " l.querySelector('input').click(); })",
    )


def test_the_page_of_a_sweep(tmp_path: Path) -> None:
    what = {
        "models": {
            "digits": {"file": str(DIGITS)},
            "tiny": {"file": str(network(tmp_path))},
        },
        "sweeps": {
            "all": {
                "target": ["cortex-m0", "cortex-m4", "cortex-m55"],
                "optimise": ["size", "speed"],
                "ram-limit": [False, 200],
            }
        },
    }
    out = tmp_path / "out"
    found = pybuild.sweep(what, out, executor=ThreadPoolExecutor(1))
    good = [row for row in found.rows if not row["problems"]]
    assert len(found.rows) == 24 and 0 < len(found.failed) < 12
    with browser() as driver:
        assert opened(driver, found.page)["rows"] == list(found.rows)
        assert violations(driver) == []
        _judge(driver, good, found.front())
        _has_room(driver)
        assert len(table(driver, "failed")) == len(found.failed)
        assert "the limit is 200" in table(driver, "failed")[0][-1]
        _press(driver, "counts", "flash")
        _judge(driver, good, found.front("ram", "instructions"))
        _press(driver, "compare", "models, too")
        _judge(driver, good, found.front("ram", "instructions", across=True))
        _press(driver, "compare", "models, too")
        _press(driver, "model", "tiny")
        _press(driver, "target", "cortex-m0")
        left = [
            row for row in good
            if row["model"] == "digits" and row["target"] != "cortex-m0"
        ]  # fmt: skip
        assert sorted(r[:-1] for r in _shown(driver)) == sorted(map(_figures, left))
        _press(driver, "compare", "show only Pareto-optimal builds")
        assert {row[-1] for row in _shown(driver)} == {"yes"}
        points = driver.execute_script(
            "return spots.made.getOption().series.flatMap(s => s.data)"
        )
        assert len(points) == len(_shown(driver)) > 0
        assert _axes(driver) == ["value", "value"]
        _press(driver, "compare", "show only Pareto-optimal builds")
        _press(driver, "model", "tiny")
        far = [max(r[n] for r in good) / min(r[n] for r in good) for n in _SHOWN]
        assert far[0] < 100 < far[1]  # of RAM, and of instructions
        assert _axes(driver) == ["value", "log"]
        assert _axes(driver, "logarithmic") == ["log", "log"]
        assert _axes(driver, "linear") == ["value", "value"]
        _follow(driver, found.folder)


_SHOWN = ("ram", "instructions")


def _axes(driver: Any, chosen: str = "") -> list[str]:
    """Their kinds, after one was chosen."""
    settled(
        driver,
        "const all = [...document.querySelectorAll('#builds select')];"
        "const one = all.find(s => s.options[0].textContent === 'as fits');"
        f"if ('{chosen}') {{ one.value = '{chosen}';"
        " one.dispatchEvent(new Event('change')); }",
    )
    found = driver.execute_script(
        "const made = spots.made.getOption();"
        "return [made.xAxis[0].type, made.yAxis[0].type]"
    )
    return list(found)


def _has_room(driver: Any) -> None:
    """Rows of the table are one line high, two on a phone, and the page is as wide as
    the window, whatever it is."""
    before = driver.get_window_size()
    for wide, most in ((500, 60), (1280, 40), (1920, 40)):
        driver.set_window_size(wide, 1000)
        settled(driver, "window.dispatchEvent(new Event('resize'))")
        high, page, window = driver.execute_script(
            "const rows = [...document.querySelectorAll('#builds tbody tr')];"
            "return [Math.max(...rows.map(row => row.offsetHeight)),"
            " document.documentElement.scrollWidth, window.innerWidth]"
        )
        assert 20 < high <= most and page <= window, (wide, high, page)
    driver.set_window_size(before["width"], before["height"])
    ticks = driver.execute_script(
        "const said = spots.made.getOption().xAxis[0].axisLabel.formatter;"
        "return [said(1000), said(1500)]"
    )
    assert ticks == ["1,000", "1,500"]


def _judge(driver: Any, rows: list[Any], best: list[Any]) -> None:
    keys = {row["key"] for row in best}
    wanted = [
        [*_figures(row), "yes" if row["key"] in keys else "no"] for row in rows
    ]  # fmt: skip
    assert sorted(_shown(driver)) == sorted(wanted)


def _follow(driver: Any, folder: Path) -> None:
    """The first link leads to a report, whose scripts lie beside it."""
    link = driver.execute_script(
        "return document.querySelector('#builds th a').getAttribute('href')"
    )
    driver.get((folder / link).as_uri())
    settled(driver, "showAll()")
    assert driver.get_log("browser") == []
    assert driver.execute_script("return data.report.name") == "digits"
    fetched = driver.execute_script(
        "return performance.getEntriesByType('resource').map(r => r.name)"
    )
    assert all(str(name).startswith("file://") for name in fetched)
    assert driver.execute_script("return document.querySelectorAll('section').length")
