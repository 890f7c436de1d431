"""Architectures of torchvision, timm and transformers as torch.export saves them: does
each build, and is it what PyTorch computes. Writes docs/exported.md:

python tests/exported/architectures.py FOLDER   needs torch: the files
python -m tests.models.eager FOLDER [NAME...]   all that lie there, or those
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pybuild
from pybuild.errors import BuildError
from pybuild.frontends.torch.reader.archive import read
from pybuild.host.trace import recorded
from pybuild.verify.roundings import roundings
from tests.frontends.torch.test_exported_programs import (
    standard_of_program,
    whole_biases,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "exported.md"
ENOUGH = 1e-5  # of the range


@dataclass(frozen=True)
class Row:
    """A line of the page: what stands in each column."""

    nodes: str = ""
    weights: str = ""
    float32: str = ""
    int8: str = ""


def _ran(path: Path) -> tuple[pybuild.Model, list[Any], list[Any], list[Any]]:
    """The model, what goes in, what comes out of its build, and PyTorch's."""
    model = pybuild.load(path)
    arrays = np.load(path.with_suffix(".npz"))
    given, want = ([arrays[k] for k in sorted(arrays.files) if k[0] == s] for s in "xy")
    net = model.build().host("llvm")
    found = net.run(**dict(zip(model.graph.inputs, given, strict=True)))
    net.close()
    return model, given, list(found.values()), want


def in_float(path: Path) -> Row:
    """How far a build is from PyTorch, in ranges of its output."""
    try:
        model, _, have, want = _ran(path)
    except BuildError as error:
        return Row(float32=f"refused: {str(error).splitlines()[0].partition(': ')[2]}")
    pairs = list(zip(have, want, strict=True))
    assert all(a.shape == b.shape for a, b in pairs)
    far = max(float(abs(a - b).max() / np.ptp(b)) for a, b in pairs)
    said = f"{far:.0e}" if far <= ENOUGH else f"**{far:.0e}**"
    weights = sum(value.nbytes for value in model.graph.constants.values()) // 4
    return Row(f"{len(model.lower().nodes):,}", f"{weights:,}", said)


def in_int8(path: Path) -> str:
    """Against the program's own nodes in float64, with biases of int32."""
    try:
        model, given, have, _ = _ran(path)
    except BuildError as error:
        return f"refused: {str(error).splitlines()[0].partition(': ')[2]}"
    program = whole_biases(read(path.name, path.read_bytes(), {}))
    with tempfile.TemporaryDirectory() as folder:
        want = standard_of_program(Path(folder), program, given)
        pairs = zip(have, want, strict=True)
        off = sum(int((~np.isclose(a, b, 1e-5, 1e-6)).sum()) for a, b in pairs)
        if not off:
            return "="
        ties = _ties(Path(folder) / "net.onnx", model, given)
    return f"= but {off} at ties" if ties else f"{off} differ"


def _ties(standard: Path, model: pybuild.Model, given: list[Any]) -> bool:
    """Whether each layer gives what float64 makes of what it reads, but where that is
    the middle of two integers, as far as float32 resolves."""
    library = model.build()
    inputs = dict(zip(model.graph.inputs, given, strict=True))
    net = library.host("llvm")
    found = roundings(standard, library.plan.graph, inputs, recorded(net, inputs))
    net.close()
    return found is not None and not found.wrong and found.ties > 0


def measured(folder: Path, name: str) -> Row:
    row, whole = in_float(folder / f"{name}.pt2"), folder / f"{name}_int8.pt2"
    said = in_int8(whole) if whole.exists() else ""
    return Row(row.nodes, row.weights, row.float32, said)


_HEAD = """\
# PyTorch's architectures

Networks as torchvision, timm and transformers write them, with seeded weights and small
inputs (`tests/exported/architectures.py`), saved by `torch.export.save` and built from
that file. Layers are those of the build, after all passes; numbers are those of its
weights.

- float: the greatest distance from what PyTorch computes eagerly, in ranges of the
  output; 1e-5 is allowed.
- PT2E: quantised for XNNPACK, by channel. `=`: equal to the program's own nodes in
  float64, biases being int32, as XNNPACK has them. Empty: not tried.
- `= but 2 at ties`: vgg's adaptive pooling takes means of two or four int8 of one
  scale, in float32, and many of them are the middle of two integers. Of 1,568 means 40
  are rounded to the other one, of which 2 of 10 outputs are a step away. Each integer
  of every layer was proven to be at such a tie, within 8e-6 of a step.

<!-- not run: it needs torch and takes an hour -->
```sh
python tests/exported/architectures.py build/exported
python -m tests.models.eager build/exported
```

| | layers | numbers | float | PT2E |
|---|---:|---:|---|---|
""".splitlines()


def page(rows: Mapping[str, Row]) -> str:
    lines = list(_HEAD)
    for name, row in sorted(rows.items()):
        cells = (name, row.nodes, row.weights, row.float32, row.int8)
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def shown() -> dict[str, Row]:
    """The rows of the page."""
    lines = [x for x in PAGE.read_text().splitlines() if x.startswith("| ")][1:]
    cells = [[one.strip() for one in line.split("|")[1:-1]] for line in lines]
    return {name: Row(*rest) for name, *rest in cells}


def main(folder: Path, *names: str) -> None:
    found = sorted(path.stem for path in folder.glob("*.pt2"))
    every = [name for name in found if not name.endswith("_int8")]
    rows = shown() if names else {}
    for name in names or every:
        rows[name] = measured(folder, name)
        print(name, rows[name], flush=True)
        PAGE.write_text(page(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
