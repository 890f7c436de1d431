"""The drawing of RAM against instructions: every plan with its value and its option,
the plan of the build, the bound, boards, light and dark."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import pybuild
from pybuild.cli import main
from pybuild.package.curve import Point
from pybuild.package.curve_svg import LETTER, ROWS, WIDE, Curve, svg
from pybuild.plan.plan import estimate
from tests.conftest import model_path

ROOT = Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "examples" / "digits" / "digits_int8.tflite")
SVG = "{http://www.w3.org/2000/svg}"
Capture = pytest.CaptureFixture[str]
Box = tuple[float, float, float, float]

POINTS = (
    Point(5_108, 3.842, 5_060, 11),
    Point(5_236, 3.021, 5_188, 11),
    Point(5_300, 1.089, 5_252, 11),
    Point(10_088, 1.086, 10_040, 11),
    Point(16_400, 1.0, 16_352),
)
BOARDS = {"small": 8 * 1024, "tiny": 1024, "twin": 8 * 1024, "large": 1 << 20}
CURVE = Curve("kws <on> a core", POINTS, POINTS[2], 3_738, BOARDS)


def texts(drawing: str) -> list[str]:
    root = ElementTree.fromstring(drawing)
    return [found.text or "" for found in root.iter(f"{SVG}text")]


def boxes(drawing: str) -> list[Box]:
    """Where each text is, about."""
    found = []
    for one in ElementTree.fromstring(drawing).iter(f"{SVG}text"):
        if one.get("transform"):
            continue
        x, y = float(one.attrib["x"]), float(one.attrib["y"])
        wide = LETTER * len(one.text or "")
        side = one.attrib["text-anchor"]
        x -= {"start": 0, "middle": wide / 2, "end": wide}[side]
        found.append((x, y - 11, x + wide, y + 3))
    return found


def test_every_plan_has_its_value_and_what_asks_for_it() -> None:
    said = texts(svg(CURVE))
    assert said[0] == "kws <on> a core"
    for point in POINTS:
        assert f"{point.ram:,}" in said
        assert f"{point.instructions:.3f} x" in said
        assert any(text.startswith(f"--ram-limit {point.limit}") for text in said)
    assert said.count("11 by rows") == 4 and said.count("all whole") == 1
    assert "this build: 5,300" in said and "--ram-limit 5252 (this build)" in said
    assert any("3,738" in text for text in said)
    axes = {"RAM in bytes (1 KB is 1,024): arena and instance", "0", "4 KB", "16 KB"}
    axes |= {"instructions, of the fastest plan's (estimated)", "1.0 x", "3.0 x"}
    assert axes <= set(said)


def test_boards_are_there_where_they_end() -> None:
    said = texts(svg(CURVE))
    assert "8 KB: small, twin" in said and "1 KB: tiny" in said
    assert not any("large" in text for text in said)


def test_the_curve_goes_through_every_plan_and_one_is_marked() -> None:
    root = ElementTree.fromstring(svg(CURVE))
    dots = [c for c in root.iter(f"{SVG}circle") if "plan" in c.attrib["class"]]
    assert len(dots) == len(POINTS)
    (mark,) = (c for c in dots if c.attrib["class"] == "mark plan")
    path = next(root.iter(f"{SVG}path")).attrib["d"]
    steps = [float(n) for n in re.findall(r"[HMV ]([\d.]+)", path)]
    assert {float(c.attrib["cx"]) for c in dots} <= set(steps)
    assert {float(c.attrib["cy"]) for c in dots} <= set(steps)
    assert float(mark.attrib["cx"]) == sorted(float(c.attrib["cx"]) for c in dots)[2]
    at = {p.instructions: float(c.attrib["cy"]) for p, c in zip(
        sorted(POINTS, key=lambda p: p.ram),
        sorted(dots, key=lambda c: float(c.attrib["cx"])), strict=True)}  # fmt: skip
    assert [at[f] for f in sorted(at)] == sorted(at.values(), reverse=True)


def test_light_and_dark_and_the_same_bytes() -> None:
    drawing = svg(CURVE)
    assert drawing == svg(CURVE)
    light, dark = drawing.split("@media (prefers-color-scheme:dark)")
    for kind in ("page", "curve", "mark", "board"):
        rule = rf"\.{kind}\{{fill:(#\w+)\}}"
        assert re.findall(rule, light) != re.findall(rule, dark) != []
    assert "<script" not in drawing and "http" not in drawing.replace(SVG[1:-1], "")


def test_a_plan_that_no_curve_has_is_drawn_too() -> None:
    mine = Point(7_000, 1.5, 6_952, 3)
    drawing = svg(Curve("m", POINTS, mine, 3_738, {}))
    assert drawing.count(' plan"') == len(POINTS) + 1
    assert "this build: 7,000" in texts(drawing)
    assert svg(Curve("m", (mine,), mine, 7_000, {})).count(' plan"') == 1


def test_of_many_plans_texts_stay_apart() -> None:
    points = tuple(
        Point(4_000 + 300 * i, 1 + (60 - i) ** 2 / 900, 3_952 + 300 * i, 61 - i)
        for i in range(61)
    )
    drawing = svg(Curve("many", points, points[33], 3_500, BOARDS))
    assert drawing.count(' plan"') == len(points)
    said = texts(drawing)
    assert sum(text.startswith("--ram-limit") for text in said) in (ROWS, ROWS + 1)
    assert "--ram-limit 13852 (this build)" in said
    assert {"--ram-limit 3952", "--ram-limit 21952"} <= set(said)
    places = boxes(drawing)
    for a, b in itertools.combinations(places, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (a, b)
    assert all(box[0] >= 0 and box[2] <= WIDE for box in places)


@pytest.mark.parametrize("model", ["kws_int8.tflite", "vww_int8.tflite", DIGITS])
def test_of_real_models(model: str, tmp_path: Path, capsys: Capture) -> None:
    path = model if model == DIGITS else str(model_path(model))
    file = tmp_path / "curve.svg"
    words = ["inspect", path, "--target", "cortex-m4", "--ram-curve", str(file)]
    assert main([*words, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    said = texts(file.read_text(encoding="utf-8"))
    assert said[0] == f"{facts['name']} on cortex-m4"
    limits = {text.split()[1] for text in said if text.startswith("--ram-limit")}
    assert limits >= {str(point["limit"]) for point in facts["ram_curve"]}
    assert f"--ram-limit {facts['ram']['arena']} (this build)" in said
    assert any(f"{facts['ram_bound']:,}" in text for text in said)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (DIGITS, "generic"),
        ("kws_int8.tflite", "cortex-m4"),
        ("kws_int8.tflite", "cortex-m55"),
        ("ic_int8.tflite", "cortex-m4"),
    ],
)
def test_the_option_of_each_row_gives_its_bytes_and_its_time(
    model: str, target: str
) -> None:
    """Kernels take the room of a limit, so stages alone do not say what a row costs."""
    given = pybuild.load(model if model == DIGITS else model_path(model))
    points = given.build(target=target).ram_curve()
    assert len(points) > 1
    made = [given.build(target=target, ram_limit=one.limit) for one in points]
    spent = [estimate(one.plan, one.kernels) for one in made]
    for point, library, cost in zip(points, made, spent, strict=True):
        assert library.plan.arena_bytes == point.limit
        ram = library.report.ram
        assert ram.arena + ram.instance == point.ram
        assert cost / spent[-1] == point.instructions
        assert library.ram_point() == point


def test_a_curve_is_no_picture_of_another_format(
    tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "curve.png"
    assert main(["inspect", DIGITS, "--ram-curve", str(file)]) == 64
    assert "is not a .svg file. Hint: FILE.svg" in capsys.readouterr().err
    assert not file.exists()
