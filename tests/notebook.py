"""Notebooks without Jupyter: runs their cells in one process and writes what they show.

`python -m tests.notebook FILE.ipynb` puts the outputs into the file. Cells with the tag
`not-run` are left out.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

_SHOWN = {"_repr_svg_": "image/svg+xml", "_repr_html_": "text/html"}


def executed(path: Path, folder: Path) -> dict[str, Any]:
    """The notebook with the outputs that its cells give when they run in a folder."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        count = 0
        for cell in notebook["cells"]:
            tags = cell["metadata"].get("tags", ())
            if cell["cell_type"] == "code" and "not-run" not in tags:
                count += 1
                cell["execution_count"] = count
                cell["outputs"] = _outputs("".join(cell["source"]), names, count)
    return notebook


def _outputs(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """What the cell printed, and the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {count}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "last", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        found.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        found.append({
            "data": _data(value), "execution_count": count, "metadata": {},
            "output_type": "execute_result",
        })  # fmt: skip
    return found


def _data(value: Any) -> dict[str, list[str]]:
    shown = {
        kind: getattr(value, method)().splitlines(keepends=True)
        for method, kind in _SHOWN.items()
        if hasattr(value, method)
    }
    return {**shown, "text/plain": repr(value).splitlines(keepends=True)}


def text_of(notebook: dict[str, Any]) -> str:
    """The notebook as its file holds it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main(path: Path) -> None:
    made = executed(path, path.parent)
    path.write_text(text_of(made), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
