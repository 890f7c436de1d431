"""The report as people see it: opened in Chromium, each panel's numbers are those of
report.json, nothing complains, and axe-core finds nothing that shuts anybody out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.graph_builder import GraphBuilder
from pybuild.html import schema
from pybuild.html.data import of_report
from pybuild.html.page import page
from pybuild.library import Library
from pybuild.package.totals import totals_of
from tests.cores.nets import one_dense, small
from tests.graphs.mobile_net import mobile_net
from tests.html.browser import browser, opened, settled, table, violations
from tests.toolchains import ROOT, require_module

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
ONNX = DIGITS.with_name("digits_int8.onnx")
CALIBRATION = DIGITS.with_name("digits_calibration.npz")
MOST_BYTES = 1_500_000
MOST_MILLISECONDS = 1000


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def mobile() -> Library:
    return pybuild.build(mobile_net(96), target="cortex-m4")


def drawn(library: Library, driver: Any, folder: Path) -> dict[str, Any]:
    """The data of its page, opened."""
    file = folder / "report.html"
    file.write_text(library.to_html(), encoding="utf-8")
    assert file.stat().st_size < MOST_BYTES
    return opened(driver, file)


def numbers(rows: list[list[str]], column: int) -> list[int]:
    return [int(row[column].replace(",", "") or 0) for row in rows]


def answers_are_there(driver: Any, data: dict[str, Any]) -> None:
    """Above all panels: does it fit, what does it cost, what would make it cheaper."""
    said = driver.execute_script("return document.querySelector('.answers').innerText")
    whole, chips = totals_of(data["report"]), data["chips"]
    fits = [one for one in chips if one["ram"] >= 0 and one["flash"] >= 0]
    assert f"it fits {len(fits)} of the {len(chips)} chips" in said
    assert f"{whole.instructions:,} instructions a run, by estimate." in said
    for one in data["report"]["savings"][:3]:
        assert f"{' '.join(one['options'])}: {one['arena']:,} instead of" in said
    tiles = driver.execute_script("return document.querySelector('.tiles').innerText")
    assert f"{whole.ram:,} B" in tiles and f"{whole.flash:,} B" in tiles


def holds_the_report(library: Library, driver: Any, data: dict[str, Any]) -> None:
    """Each panel beside the report of the library."""
    report = json.loads(json.dumps(library.advised.to_json()))
    assert data["report"] == report
    answers_are_there(driver, data)
    own = [node["kernel"] for node in report["graph"]["nodes"]]
    spent = [0 if k is None else report["kernels"][k]["instructions"] for k in own]
    cost = table(driver, "cost")
    assert [row[0] for row in cost] == [row["short"] for row in report["layers"]]
    assert numbers(cost, 2) == [row["macs"] for row in report["layers"]]
    assert numbers(cost, 3) == spent
    assert bars(driver, "cost") == spent
    blocks, shown = report["memory"]["blocks"], table(driver, "memory")
    assert numbers(shown, 2) == [block["at"] for block in blocks]
    assert numbers(shown, 3) == [block["bytes"] for block in blocks]
    peak = driver.execute_script("return document.querySelector('.who b').textContent")
    region = report["memory"]["regions"][0]
    most, size = region["most_alive"], region["bytes"]
    assert peak.endswith(f"{most:,} of {size:,} bytes")
    assert size == report["ram"]["arena"]
    graph = table(driver, "graph")
    assert numbers(graph, 4) == [row["macs"] for row in report["layers"]]
    assert numbers(graph, 5) == [row["weights"] for row in report["graph"]["nodes"]]
    told = table(driver, "bounds")
    assert numbers(told, 5) == [row["data_loops"] for row in report["bounds"]]
    assert numbers(told, 6) == [row["data_places"] for row in report["bounds"]]
    assert numbers(told, 7) == [row["instructions"] for row in report["bounds"]]
    assert report["stack"]["reason"] in text(driver, "bounds")
    held = totals_of(report).flash
    assert sum(numbers(table(driver, "flash"), 3)) == held
    assert treemap(driver) == held
    points = [asdict(point) for point in library.ram_curve()]
    assert data["plans"]["points"] == points
    plans = table(driver, "plans")
    assert numbers(plans, 0) == [point["ram"] for point in points]
    chosen = [row[0] for row in plans if row[4] == "this build"]
    assert chosen == [f"{report['ram']['arena'] + report['ram']['instance']:,}"]
    for stage in report["stages"]:
        if stage["drawing"]:
            assert "\n".join(stage["drawing"]) in text(driver, "stages")
    assert report["command"] in text(driver, "made")
    model = report["provenance"]["model"]
    assert model is None or model["sha256"] in text(driver, "made")


def text(driver: Any, panel: str) -> str:
    found: str = driver.execute_script(
        "return document.getElementById(arguments[0]).textContent", panel
    )
    return found


def bars(driver: Any, series: str) -> list[int]:
    found: list[int] = driver.execute_script(
        "const every = charts.flatMap(one => one.made.getOption().series);"
        "return every.find(s => s.id === arguments[0]).data.map(d => d.value)",
        series,
    )
    return found


def treemap(driver: Any) -> int:
    """Bytes of all leaves."""
    found: int = driver.execute_script(
        "const of = node => node.children ? sum(node.children) : node.value;"
        "const sum = nodes => nodes.reduce((all, node) => all + of(node), 0);"
        "return sum(charts.flatMap(one => one.made.getOption().series)"
        ".find(s => s.id === 'flash').data)"
    )
    return found


@pytest.mark.parametrize("name", ["kws_int8", "vww_int8"])
def test_numbers_of_real_networks(
    name: str, driver: Any, models: Path, tmp_path: Path
) -> None:
    library = pybuild.load(models / f"{name}.tflite").build(target="cortex-m4")
    holds_the_report(library, driver, drawn(library, driver, tmp_path))


def test_numbers_of_a_mobile_net(mobile: Library, driver: Any, tmp_path: Path) -> None:
    data = drawn(mobile, driver, tmp_path)
    holds_the_report(mobile, driver, data)
    whole = mobile.again(plan="whole")
    assert data["other"]["ram"] == asdict(whole.report.ram)
    heads = driver.execute_script(
        "return [...document.querySelectorAll('#memory h3')].map(h => h.textContent)"
    )
    sizes = [f"{made.report.ram.arena:,} bytes" for made in (mobile, whole)]
    assert [head.rpartition(": ")[2] for head in heads] == sizes
    assert json.loads((ROOT / "docs/report-schema.json").read_text()) == schema.schema()
    require_module("jsonschema")
    import jsonschema

    jsonschema.validate(data, schema.schema())


def test_numbers_of_samples(driver: Any, tmp_path: Path) -> None:
    """Accuracy and error by layer; the graph is coloured by it."""
    library = pybuild.load(ONNX).build(target="cortex-m4")
    file = tmp_path / "report.html"
    file.write_text(library.to_html(CALIBRATION), encoding="utf-8")
    data = opened(driver, file)
    require_module("jsonschema")
    import jsonschema

    jsonschema.validate(data, schema.schema())
    found = data["samples"]
    said = table(driver, "samples", 0)
    right = found["classes"]["right"]
    assert {row[0]: int(row[1]) for row in said} == right
    assert right["build"] == right["reference"] == 199 and "199" in said[0]
    shown = table(driver, "samples")
    for row, cells in zip(found["layers"], shown, strict=True):
        assert cells[:3] == [row["short"], row["op"], row["dtype"]]
        share = float(cells[3].removesuffix(" %"))
        assert share == pytest.approx(100 * row["error"], abs=0.006)
        assert float(cells[4]) == pytest.approx(row["snr"], abs=0.006)
    decibels = [row["snr"] for row in found["layers"]]
    assert bars(driver, "noise") == decibels
    settled(driver, "const by = document.querySelector('#graph select');"
            "by.value = 'error'; by.dispatchEvent(new Event('change'))")  # fmt: skip
    assert "most noise" in text(driver, "graph")
    assert violations(driver) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_shut_out(theme: str, driver: Any, tmp_path: Path) -> None:
    library = pybuild.load(DIGITS).build(target="cortex-m4")
    drawn(library, driver, tmp_path)
    settled(driver, "document.documentElement.dataset.theme === '" + theme + "' || "
            "document.querySelector('.theme').click()")  # fmt: skip
    assert violations(driver) == []
    drawn_in = driver.execute_script(
        "const shown = getComputedStyle(document.querySelector('#cost .key i'));"
        "const ink = document.createElement('i');"
        "ink.style.background = hue(0);"
        "return [shown.backgroundColor, ink.style.backgroundColor]"
    )
    assert drawn_in[0] == drawn_in[1]  # keys have the colours of what they explain


def test_keyboard(driver: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    library = pybuild.load(DIGITS).build(target="cortex-m4")
    drawn(library, driver, tmp_path)
    graph = driver.find_element(By.CSS_SELECTOR, "#graph [role=group]")
    for layer in library.report.layers[:3]:
        graph.send_keys(Keys.ARROW_RIGHT)
        said = driver.find_element(By.CSS_SELECTOR, "#graph .facts").text
        assert said.startswith(layer.short) and f"{layer.macs:,}" in said
    slider = driver.find_element(By.CSS_SELECTOR, "#memory input[type=range]")
    slider.send_keys(Keys.HOME)
    assert "before the run" in slider.get_attribute("aria-valuetext")
    search = driver.find_element(By.CSS_SELECTOR, "#graph input[type=search]")
    search.send_keys(library.report.layers[-1].short, Keys.ENTER)
    said = driver.find_element(By.CSS_SELECTOR, "#graph .facts").text
    assert said.startswith(library.report.layers[-1].short)
    sort = driver.find_element(By.XPATH, "//*[@id='cost']//th//button[.='MACs']")
    sort.send_keys(Keys.ENTER)
    macs = numbers(table(driver, "cost"), 2)
    assert macs == sorted(macs, reverse=True) and len(set(macs)) > 2
    assert driver.get_log("browser") == []


HOSTILE = "</script><img src=x onerror=alert(1)>\u2028'\"&<b>"


def test_names_are_text(driver: Any, tmp_path: Path) -> None:
    """A name ends no element, runs nothing, and is shown as it is, but for what would
    break a line, which is written out."""
    net = GraphBuilder(HOSTILE)
    x = net.input(HOSTILE, (1, 4, 4, 8), "int8", quant=(0.1, 0))
    for number in range(3):
        x = net.op("add", x, x, name=f"{HOSTILE}{number}", quant=(0.1, 0))
    net.output(x, f"{HOSTILE}out")
    library = pybuild.build(net.build(), name="hostile")
    assert library.to_html().count("</script") == 4  # the page's own
    drawn(library, driver, tmp_path)
    strange = "img, b:not(.tile b, .who b)"
    assert driver.execute_script(f"return document.querySelector('{strange}')") is None
    said = text(driver, "made")
    seen = HOSTILE.replace("\u2028", "\\u2028")
    assert said.count(seen) >= 2 and f"{seen}out" in said


def test_pages_are_the_same_every_time() -> None:
    library = pybuild.load(DIGITS).build()
    assert library.to_html() == pybuild.load(DIGITS).build().to_html()
    shown = library._repr_html_()
    assert shown.startswith("<iframe") and shown.count("<iframe") == 1
    assert "<script" not in re.sub(r'srcdoc="[^"]*"', "", shown)


def large(report: dict[str, Any], count: int) -> dict[str, Any]:
    """A report with its layers again and again, in a chain."""
    layers, nodes, tensors = report["layers"], report["graph"]["nodes"], []
    made_layers, made_nodes = [], []
    for number in range(count):
        layer, node = layers[number % len(layers)], nodes[number % len(nodes)]
        made_layers.append({**layer, "name": f"n{number}", "short": f"n{number}"})
        ends = {"inputs": [f"t{number}"], "outputs": [f"t{number + 1}"]}
        made_nodes.append({**node, **ends})
        tensors.append({**report["graph"]["tensors"][0], "name": f"t{number + 1}",
                        "short": f"t{number + 1}"})  # fmt: skip
    graph = {"nodes": made_nodes, "tensors": tensors}
    return {**report, "layers": made_layers, "graph": graph}


def painted(driver: Any, file: Path) -> float:
    """Milliseconds until the page is seen; where other processes made them longer,
    those that its thread worked until it was loaded."""
    driver.get("about:blank")
    before = worked(driver)
    driver.get(file.as_uri())
    spent = worked(driver)
    spent -= before if spent > before else 0.0  # else it has a process of its own
    seen = driver.execute_async_script(
        "const done = arguments[arguments.length - 1]; setTimeout(() => done("
        "performance.getEntriesByName('first-contentful-paint')[0].startTime), 100)"
    )
    return min(float(seen), 1000 * spent)


def worked(driver: Any) -> float:
    found = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(one["value"] for one in found if one["name"] == "ThreadTime"))


def test_many_nodes_are_painted_at_once(driver: Any, tmp_path: Path) -> None:
    facts = pybuild.load(DIGITS).build(target="cortex-m4").advised.to_json()
    file = tmp_path / "large.html"
    file.write_text(page("large", of_report(large(facts, 10_000))), encoding="utf-8")
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    assert min(painted(driver, file) for _ in range(3)) < MOST_MILLISECONDS
    settled(driver, "showAll()")
    assert driver.get_log("browser") == []
    shown = "return document.querySelectorAll('#graph tbody tr').length"
    assert driver.execute_script(shown) == 100
    assert len(table(driver, "graph")) == 10_000


def test_shapes_do_not_overlap(mobile: Library) -> None:
    """What the map shows is sound: no byte has two owners at one time."""
    memory = mobile.report.memory
    assert memory is not None and len(memory.regions) == 1
    block_offsets = np.zeros((memory.times + 1, memory.regions[0].bytes // 4), np.int8)
    for block in memory.blocks:
        for piece in block.pieces:
            first, end = (block.at + piece.at) // 4, -(-(block.at + piece.end) // 4)
            for start, stop in piece.times:
                block_offsets[start:stop, first:end] += 1
    assert block_offsets.max() == 1


def test_cores_over_time(driver: Any, tmp_path: Path) -> None:
    """Each core's lane; where one core runs, the page says so."""
    library = small().build(target="cortex-m33", cores=2)
    use = drawn(library, driver, tmp_path)["report"]["cores"]
    rows = table(driver, "cores")
    steps = use["shared"]
    for core in (0, 1):
        assert numbers(rows, 2 + core) == [step["cores"][core] for step in steps]
    own, waited = numbers(rows, 2), numbers(rows, 4)
    before = use["together"] - sum(own) - sum(waited)
    assert 0 < before < 200 and use["together"] < use["alone"]
    assert any(waited) and any(numbers(rows, 5))
    lanes = driver.execute_script(
        "const every = charts.flatMap(one => one.made.getOption().series);"
        "return every.find(s => s.id === 'lanes').data"
    )
    computed = [sum(b - a for a, b, c, _, idle in lanes if c == core and not idle)
                for core in (0, 1)]  # fmt: skip
    assert computed == [sum(own), sum(numbers(rows, 3))]
    assert max(b for _, b, *_ in lanes) == use["together"]
    assert f"{use['together']:,} instructions from begin to end" in text(
        driver, "cores"
    )
    assert violations(driver) == []
    tiny = one_dense().build(target="cortex-m33", cores=2)
    use = drawn(tiny, driver, tmp_path)["report"]["cores"]
    assert (use["sliced"], use["shared"], use["share"]) == (0, [], 1.0)
    assert "One core runs the model" in text(driver, "cores")
