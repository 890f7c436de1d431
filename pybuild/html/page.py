"""A page of its own: data, what draws it, and licences, in one HTML file.

The only place where text becomes HTML: all strangers' names are in the JSON, and the
page's scripts make text of them, never markup.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pybuild.text.escaped import escaped, escaped_values

_HERE = Path(__file__).parent
_DRAWING, _LICENCES, _STYLE = "drawing.min.js", "LICENSES.txt", "page.css"
# of the panels, in the order in which they need each other
_BUILD = (
    "parts.js", "memory.js", "cost.js", "graph.js", "flash.js", "samples.js",
    "cores.js", "build.js"
)  # fmt: skip
REPORT, IMAGE = (*_BUILD, "report.js"), (*_BUILD, "image.js")
COMPARISON = ("parts.js", "memory.js", "cost.js", "compare.js")
SWEEP = ("parts.js", "sweep.js")
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<noscript><p>This page draws its figures with a script; report.json beside it has the
same as text.</p></noscript>
<script type="application/json" id="data">{data}</script>
<script type="text/plain" id="licences">
{licences}</script>
{scripts}
</body>
</html>
"""


def page(title: str, data: Mapping[str, Any], scripts: Sequence[str] = REPORT) -> str:
    """The whole file; the same data gives the same bytes.

    data     plain dicts, lists, strings and numbers; scripts: names of files here
    """
    drawing = _inside(_read(_DRAWING))
    script = _inside("\n".join(map(_read, scripts)))
    hashes = " ".join(f"'sha256-{_digest(text)}'" for text in (drawing, script))
    inline = f"<script>{drawing}</script>\n<script>{script}</script>"
    return _filled(title, data, hashes, inline)


def scripts_beside() -> dict[str, str]:
    """Files that many pages in one folder share, by names that tell their content."""
    texts = _read(_DRAWING), "\n".join(map(_read, REPORT))
    return dict(zip(_names_beside(), texts, strict=True))


def report_beside(title: str, data: Mapping[str, Any]) -> str:
    """The same as page(), for a report in a folder with scripts_beside()."""
    found = "\n".join(f'<script src="{name}"></script>' for name in _names_beside())
    return _filled(title, data, "'self' file:", found)


@functools.cache
def _names_beside() -> tuple[str, str]:
    texts = {"drawing": _read(_DRAWING), "report": "\n".join(map(_read, REPORT))}
    digests = {n: hashlib.sha256(t.encode()).hexdigest()[:12] for n, t in texts.items()}
    return f"drawing-{digests['drawing']}.js", f"report-{digests['report']}.js"


def _filled(title: str, data: Mapping[str, Any], allowed: str, scripts: str) -> str:
    policy = f"default-src 'none'; script-src {allowed}; "
    policy += "style-src 'unsafe-inline'; img-src data: blob:"
    return _PAGE.format(
        policy=policy,
        title=html.escape(escaped(title)),
        style=_read(_STYLE),
        data=quoted(data),
        licences=_inside(_read(_LICENCES)),
        scripts=scripts,
    )


def quoted(data: Mapping[str, Any]) -> str:
    """The data as JSON that cannot end a script element, whatever names it holds."""
    text = json.dumps(
        escaped_values(data), separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def framed(text: str, height: int = 720) -> str:
    """A page inside another one, as a notebook shows it."""
    style = f"width:100%;height:{height}px;border:0"
    return f'<iframe style="{style}" srcdoc="{html.escape(text)}"></iframe>'


def _inside(text: str) -> str:
    assert "</script" not in text.lower() and "<!--" not in text
    return text


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@functools.cache
def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
