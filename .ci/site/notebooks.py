"""Notebooks as pages: their cells, and below each its stored output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def page(notebook: dict[str, Any]) -> str:
    """The notebook as Markdown."""
    parts: list[str] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts += [f"```python\n{source}\n```", *_shown(cell["outputs"])]
    return "\n\n".join(parts) + "\n"


def _shown(outputs: list[dict[str, Any]]) -> Iterator[str]:
    for output in outputs:
        data = output.get("data", {"text/plain": output.get("text", [])})
        for kind in ("image/svg+xml", "text/html"):
            if kind in data:
                # an empty line would end the HTML
                lines = [line for line in data[kind] if line.strip()]
                yield f'<div class="output">{"".join(lines)}</div>'
                break
        else:
            yield f"```text\n{''.join(data['text/plain']).rstrip()}\n```"
