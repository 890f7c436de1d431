"""Builds several models with several options into one tree and prints a table.

    python examples/codegen/generate.py [-o DIR] [MODEL...]

What is a loop here can be your build script: load once, build often.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import pybuild  # noqa: E402
from pybuild.errors import BuildError  # noqa: E402

DIGITS = ROOT / "examples" / "digits"
MODELS = (DIGITS / "digits_int8.tflite", DIGITS / "digits_f32.onnx")

# a suffix for the name, and what Model.build takes
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "_keep": {"input": "keep"},
    "_small": {"optimise": "size"},
    "_fast": {"optimise": "speed"},
}
COLUMNS = ("name", "input", "optimise", "RAM", "bound", "weights", "tables", "C bytes")


def built(model: Path, out: Path) -> list[tuple[pybuild.Library, dict[str, Any]]]:
    """One library per variant, each in a folder of its own."""
    loaded = pybuild.load(str(model))
    stem = model.stem.replace("-", "_")
    return [
        (
            loaded.build(
                str(out / f"{stem}{suffix}"), name=f"{stem}{suffix}", **options
            ),
            options,
        )
        for suffix, options in VARIANTS.items()
    ]


def row(
    library: pybuild.Library, options: dict[str, Any], out: Path
) -> tuple[str, ...]:
    report = library.report
    code = sum(p.stat().st_size for p in (out / report.name).glob("**/*.[ch]"))
    return (
        report.name,
        options.get("input", "reuse"),
        options.get("optimise", "balanced"),
        f"{report.ram.arena:,}",
        f"{report.ram.lower_bound:,}",
        f"{report.flash.weights:,}",
        f"{report.flash.tables:,}",
        f"{code:,}",
    )


def show(rows: list[tuple[str, ...]]) -> None:
    """Columns as wide as they need; numbers to the right."""
    widths = [max(len(r[i]) for r in rows) for i in range(len(COLUMNS))]
    for cells in rows:
        pairs = enumerate(zip(cells, widths, strict=True))
        print("  ".join(c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in pairs))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Several models, several options.")
    parser.add_argument("models", nargs="*", type=Path, default=MODELS)
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "build" / "codegen")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    rows, index = [COLUMNS], []
    for model in args.models:
        try:
            for library, options in built(model, args.out):
                rows.append(row(library, options, args.out))
                index.append({"options": options, **library.report.to_json()})
        except BuildError as error:
            print(error, file=sys.stderr)
            return error.exit_code
    show(rows)
    (args.out / "index.json").write_text(json.dumps(index, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
