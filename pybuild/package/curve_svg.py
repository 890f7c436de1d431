"""RAM against instructions as a drawing: which plans there are, what each is asked for
with, and where boards end.

Text and shapes only: no script; colours are those of a light or dark page. The same
values give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from pybuild.package.curve import Point, layers_told
from pybuild.records import dataclass

# in units of the drawing; fonts have 13 of them
WIDE, LEFT, RIGHT, TOP, HIGH = 840, 92, 34, 88, 300
LINE, LETTER, DOT = 20, 7.2, 5
BOTTOM = TOP + HIGH
# rows of the table below; of more plans, every so many-th
ROWS = 14

_LIGHT = {
    "page": "#ffffff", "ink": "#1f2328", "soft": "#59636e", "grid": "#d8dee4",
    "curve": "#0969da", "mark": "#bc4c00", "none": "#eef1f4", "board": "#1a7f37",
}  # fmt: skip
_DARK = {
    "page": "#0d1117", "ink": "#e6edf3", "soft": "#9198a1", "grid": "#30363d",
    "curve": "#58a6ff", "mark": "#f0883e", "none": "#1b222b", "board": "#56d364",
}  # fmt: skip
_FONT = "13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Curve:
    """The contents of the drawing.

    title   the model's name and what it is built for
    points  the smallest first
    chosen  the plan of this build
    bound   bytes that no plan by rows is below
    boards  bytes of RAM by name
    """

    title: str
    points: tuple[Point, ...]
    chosen: Point
    bound: int
    boards: Mapping[str, int]


def svg(curve: Curve) -> str:
    found = _Drawing(curve)
    rows = _told(curve)
    tall = BOTTOM + 74 + LINE * (len(rows) + 1)
    size = f'viewBox="0 0 {WIDE} {tall}" width="{WIDE}" height="{tall}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(curve.title)}: RAM against instructions</title>",
        f"<style>{_style()}</style>",
        f'<rect class="page" width="{WIDE}" height="{tall}"/>',
        _text(24, 32, curve.title, "head"),
        _text(24, 56, _meaning(found), "soft"),
        *found.axes(),
        *found.limits(),
        *found.curve_line(),
        *found.dots(),
        *_table(rows, BOTTOM + 74),
        "</svg>",
        "",
    ]
    return "\n".join(parts)


def _meaning(found: _Drawing) -> str:
    text = "Each dot is the plan of its --ram-limit (arena)."
    if list(found.boards()):
        text += " Dashed: a board's, which holds stack and data, too."
    return text


def _style() -> str:
    """Light, and dark where the page is."""
    shapes = f"text{{font:{_FONT};font-variant-numeric:tabular-nums}}"
    shapes += ".head{font-size:18px;font-weight:600}.bold{font-weight:600}"
    shapes += ".line{fill:none;stroke-width:2}.thin{stroke-width:1}"
    dark = "@media (prefers-color-scheme:dark){" + _colours(_DARK) + "}"
    return shapes + _colours(_LIGHT) + dark


def _colours(of: Mapping[str, str]) -> str:
    fills = f"text,.ink{{fill:{of['ink']}}}.soft{{fill:{of['soft']}}}"
    fills += "".join(
        f".{name}{{fill:{of[name]}}}.{name}-line{{stroke:{of[name]}}}"
        for name in ("page", "curve", "mark", "none", "board", "grid")
    )
    return fills


class _Drawing:
    """The plot: from RAM and instructions to places."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.all = sorted({*curve.points, curve.chosen}, key=lambda p: p.ram)
        most = max(p.ram for p in self.all)
        least = min(curve.bound, self.all[0].ram)
        span = max(most - least, most / 8)
        self.low = 0 if least < most / 2 else least - span / 8
        self.high = most + (most - self.low) / 14
        self.top = max(1.02, *(p.instructions for p in self.all))
        self.taken: list[tuple[float, float, float, float]] = []

    def x(self, ram: float) -> float:
        share = (ram - self.low) / (self.high - self.low)
        return round(LEFT + (WIDE - LEFT - RIGHT) * share, 1)

    def y(self, factor: float) -> float:
        share = 0.12 + 0.78 * (factor - 1) / (self.top - 1)
        return round(BOTTOM - HIGH * share, 1)

    def axes(self) -> Iterator[str]:
        ticks = _ticks(1, self.top, 5)
        places = next(n for n in range(1, 9) if ticks == [round(t, n) for t in ticks])
        for factor in ticks:
            y = self.y(factor)
            yield _line(LEFT, y, WIDE - RIGHT, y, "grid-line thin")
            yield _text(LEFT - 8, y + 4, f"{factor:.{places}f} x", "soft", "end")
        for ram in _steps(self.low, self.high):
            x = self.x(ram)
            yield _line(x, BOTTOM, x, BOTTOM + 5, "grid-line thin")
            yield _text(x, BOTTOM + 20, _bytes(ram), "soft", "middle")
        yield _line(LEFT, BOTTOM, WIDE - RIGHT, BOTTOM, "grid-line")
        middle = (LEFT + WIDE - RIGHT) / 2
        what = "RAM in bytes (1 KB is 1,024): arena and instance"
        yield _text(middle, BOTTOM + 42, what, "soft", "middle")
        turned = f'transform="rotate(-90 22 {TOP + HIGH / 2:g})" '
        what = "instructions, of the fastest plan's (estimated)"
        yield _text(22, TOP + HIGH / 2, what, "soft", "middle", turned)

    def limits(self) -> Iterator[str]:
        """The lines of the lower bound, and of the boards' RAM."""
        x = self.x(self.curve.bound)
        size = f'width="{x - LEFT:g}" height="{HIGH}"'
        yield f'<rect class="none" x="{LEFT}" y="{TOP}" {size}/>'
        yield _line(x, TOP, x, BOTTOM, "grid-line")
        words = f"below {self.curve.bound:,}: no plan by rows"
        if self._width(words) + 8 < x - LEFT:
            yield self._label(x - 6, BOTTOM - 8, words, "soft", "end")
        else:
            yield self._label(x + 6, BOTTOM - 8, words, "soft", "start")
        for number, (ram, names) in enumerate(self.boards()):
            x, y = self.x(ram), TOP + 14 + 18 * (number % 3)
            yield _line(x, TOP, x, BOTTOM, "board-line thin", 'stroke-dasharray="5 4" ')
            words = f"{_bytes(ram)}: {', '.join(names)}"
            side = "start" if x + self._width(words) + 8 < WIDE else "end"
            at = x + 6 if side == "start" else x - 6
            yield self._label(at, y, words, "board", side)

    def boards(self) -> Iterator[tuple[int, list[str]]]:
        sizes = {r for r in self.curve.boards.values() if self.low < r < self.high}
        for ram in sorted(sizes):
            yield ram, sorted(n for n, size in self.curve.boards.items() if size == ram)

    def curve_line(self) -> Iterator[str]:
        """With more RAM it stays as it is until the next plan fits."""
        points = self.curve.points
        path = f"M{self.x(points[0].ram):g} {self.y(points[0].instructions):g}"
        for point in points[1:]:
            path += f"H{self.x(point.ram):g}V{self.y(point.instructions):g}"
        yield f'<path class="line curve-line" d="{path}H{WIDE - RIGHT}"/>'

    def dots(self) -> Iterator[str]:
        for start, end in pairwise(self.curve.points):
            left, right = self.x(start.ram), self.x(end.ram)
            y = self.y(start.instructions)
            self.taken.append((left, y - 1, right, y + 1))
            self.taken.append((right - 1, y, right + 1, self.y(end.instructions)))
        for point in self.all:
            at = self.x(point.ram), self.y(point.instructions)
            self.taken.append((at[0] - DOT, at[1] - DOT, at[0] + DOT, at[1] + DOT))
        first = sorted(self.all, key=lambda p: (p != self.curve.chosen, p.ram))
        for point in first:
            x, y = self.x(point.ram), self.y(point.instructions)
            mine = point == self.curve.chosen
            kind = "mark" if mine else "curve"
            if mine:
                ring = f'r="{DOT + 5}" class="line mark-line"'
                yield f'<circle cx="{x:g}" cy="{y:g}" {ring}/>'
            yield f'<circle class="{kind} plan" cx="{x:g}" cy="{y:g}" r="{DOT}"/>'
            words = f"this build: {point.ram:,}" if mine else f"{point.ram:,}"
            yield from self._beside(x, y, words, "mark bold" if mine else "ink")

    def _beside(self, x: float, y: float, words: str, kind: str) -> Iterator[str]:
        """A label where nothing is yet; the table below has what finds no place."""
        wide = self._width(words)
        for left, base, side in (
            (x + 13, y - 8, "start"), (x + 13, y + 18, "start"),
            (x - 13, y - 8, "end"), (x - 13, y + 18, "end"),
        ):  # fmt: skip
            start = left - wide if side == "end" else left
            box = (start, base - 12, start + wide, base + 4)
            inside = box[0] > LEFT and box[2] < WIDE - 4 and box[3] < BOTTOM
            if inside and not any(map(_meets, self.taken, [box] * len(self.taken))):
                yield self._label(left, base, words, kind, side)
                return

    def _label(self, x: float, y: float, words: str, kind: str, side: str) -> str:
        wide = self._width(words)
        start = x - wide if side == "end" else x
        self.taken.append((start, y - 12, start + wide, y + 4))
        return _text(x, y, words, kind, side)

    def _width(self, words: str) -> float:
        return LETTER * len(words)


def _meets(
    a: tuple[float, float, float, float], b: tuple[float, float, float, float]
) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


# ---- the table ------------------------------------------------------------------


def _told(curve: Curve) -> list[tuple[Point, bool]]:
    """The plans that have rows, the smallest first, and whether it is this build's."""
    last = len(curve.points) - 1
    kept = {round(last * i / (ROWS - 1)) for i in range(ROWS)}
    found = [curve.points[i] for i in sorted(kept)]
    rows = sorted({*found, curve.chosen}, key=lambda p: p.ram)
    return [(point, point == curve.chosen) for point in rows]


def _table(rows: Iterable[tuple[Point, bool]], y: int) -> Iterator[str]:
    heads = ("RAM, bytes", "instructions", "layers", "option")
    yield from _row(heads, y, "soft")
    for point, mine in rows:
        y += LINE
        option = f"--ram-limit {point.limit}" + " (this build)" * mine
        numbers = f"{point.ram:,}", f"{point.instructions:.3f} x"
        cells = (*numbers, layers_told(point), option)
        yield from _row(cells, y, "mark bold" if mine else "ink")


def _row(cells: Sequence[str], y: int, kind: str) -> Iterator[str]:
    places = ((LEFT + 90, "end"), (LEFT + 220, "end"), (LEFT + 260, "start"))
    for (x, side), words in zip((*places, (LEFT + 400, "start")), cells, strict=True):
        yield _text(x, y, words, kind, side)


# ---- shapes and numbers -----------------------------------------------------------


def _text(
    x: float, y: float, words: str, kind: str, side: str = "start", more: str = ""
) -> str:
    at = f'x="{x:g}" y="{y:g}" text-anchor="{side}"'
    return f'<text class="{kind}" {more}{at}>{escape(words)}</text>'


def _line(
    x: float, y: float, to_x: float, to_y: float, kind: str, more: str = ""
) -> str:
    ends = f'x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}"'
    return f'<line class="{kind}" {more}{ends}/>'


def _ticks(low: float, high: float, count: int) -> list[float]:
    """About so many round numbers."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 9) for i in range(first, last + 1)]


def _steps(low: float, high: float) -> list[float]:
    """Round numbers of bytes: whole KB where there is room for some."""
    if high - low < 4096:
        return _ticks(low, high, 6)
    step = 1024 * 2 ** math.ceil(math.log2((high - low) / 1024 / 8))
    numbers = range(math.ceil(low / step), int(high // step) + 1)
    return [float(number * step) for number in numbers]


def _bytes(size: float) -> str:
    for unit, name in ((1024**2, "MB"), (1024, "KB")):
        if size >= unit and size % unit == 0:
            return f"{size / unit:,.0f} {name}"
    return f"{size:,.0f}"
