"""Debian's Chromium, driven by its own driver: what a page shows, and what it complains
about."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.toolchains import absent, require, require_module

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def browser() -> Iterator[Any]:
    require_module("selenium")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    found = next(filter(None, map(shutil.which, NAMES)), None)
    program = found or absent("there is no Chromium: apt-get install chromium")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu",
                 "--window-size=1400,1000", "--disable-dev-shm-usage"):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(require("chromedriver")))
    driver.set_script_timeout(120)
    try:
        yield driver
    finally:
        driver.quit()


def opened(driver: Any, path: Path) -> dict[str, Any]:
    """Opens a page with all its panels drawn; its data.

    Nothing may be on the console, and nothing may be fetched.
    """
    driver.get(path.as_uri())
    settled(driver, "showAll()")
    assert driver.get_log("browser") == []
    fetched = "return performance.getEntriesByType('resource').map(r => r.name)"
    assert driver.execute_script(fetched) == []
    facts: dict[str, Any] = driver.execute_script("return data")
    return facts


def settled(driver: Any, script: str) -> None:
    """Runs a script, and waits until what it has asked for is drawn."""
    driver.execute_async_script(
        f"{script}; const done = arguments[arguments.length - 1];"
        "requestAnimationFrame(() => requestAnimationFrame(() => done()));"
    )


def table(driver: Any, panel: str, number: int = -1) -> list[list[str]]:
    """The cells of a table of a panel, all rows; the last if none is asked for."""
    rows: list[list[str]] = driver.execute_script(
        "const all = document.querySelectorAll(`#${arguments[0]} table`);"
        "const one = all[(arguments[1] + all.length) % all.length];"
        "const more = one.closest('.scroll').nextElementSibling;"
        "if (more) more.click();"
        "return [...one.tBodies[0].rows].map(row =>"
        " [...row.cells].map(cell => cell.textContent));",
        panel,
        number,
    )
    return rows


@cache
def _axe() -> str:
    require_module("selenium_axe_python")
    import selenium_axe_python

    folder = Path(str(selenium_axe_python.__file__)).parent
    return next(folder.rglob("axe.min.js")).read_text(encoding="utf-8")


def violations(driver: Any) -> list[str]:
    """What axe-core finds, all parts unfolded: a line for each rule, with the first
    element."""
    settled(driver, "document.querySelectorAll('details').forEach(d => d.open = true)")
    driver.execute_script(_axe())
    found = driver.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document).then(result => done(result.violations.map(v =>"
        " `${v.id}: ${v.help}: ${v.nodes[0].html}`)));"
    )
    return list(found)
