"""Architectures of tests/exported/zoo.py by the quantisers that people use: does it
build, is it equal, how much RAM. Writes docs/models.md:

python -m tests.models.matrix [NAME[:FORM]...]   all, or those; the rest as it is there
"""

from __future__ import annotations

import functools
import logging
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import pybuild
from pybuild.errors import BuildError
from pybuild.frontends.torch import converted
from pybuild.frontends.torch.reader.archive import read
from pybuild.verify.check import EQUAL_BUT, check
from tests.frontends.torch.test_exported_programs import whole_biases

ROOT = Path(__file__).resolve().parents[2]
PT2 = ROOT / "tests" / "exported" / "pt2"
PAGE = ROOT / "docs" / "models.md"
NAMES = tuple(
    path.stem for path in sorted(PT2.glob("*.pt2")) if not path.stem.endswith("_int8")
)
DIMS = {"ds_cnn": {"s31": 1}}
SAMPLES = 3
STEPS = re.compile(r"differs here by (\d+) steps? in|differs here by")


@dataclass(frozen=True)
class Cell:
    """equal  "=", or what differs; why  of a refusal; ram  arena in bytes"""

    equal: str
    ram: int = 0
    why: str = ""


@functools.cache
def float_model(name: str) -> onnx.ModelProto:
    data = (PT2 / f"{name}.pt2").read_bytes()
    made = converted(read(name, data, DIMS.get(name, {})))[0]
    made = onnx.shape_inference.infer_shapes(made)
    return made


def example(model: onnx.ModelProto, chance: np.random.Generator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [d.dim_value for d in kind.shape.dim]
        found[value.name] = (
            chance.standard_normal(shape).astype(np.float32)
            if kind.elem_type == onnx.TensorProto.FLOAT
            else chance.integers(0, 30, shape)
        )
    return found


def by_onnxruntime(model: onnx.ModelProto, path: Path, **options: Any) -> None:
    """quantize_static of a model, calibrated with 8 seeded inputs."""
    from onnxruntime import quantization as q

    class Samples(q.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            chance = np.random.default_rng(1)
            self.left = [example(model, chance) for _ in range(8)]

        def get_next(self) -> Mapping[str, Any] | None:
            return self.left.pop() if self.left else None

    given = path.with_suffix(".float.onnx")
    onnx.save(model, given)
    kinds = {
        "u8": q.QuantType.QUInt8,
        "s8": q.QuantType.QInt8,
        "s16": q.QuantType.QInt16,
    }
    act, weight = kinds[options["act"]], kinds[options["weight"]]
    if options["form"] == "dynamic":
        q.quantize_dynamic(
            given, path, weight_type=weight,
            op_types_to_quantize=["MatMul", "Gemm", "Conv"],
        )  # fmt: skip
        return
    extra = {"ActivationSymmetric": True} if options["act"] == "s16" else {}
    q.quantize_static(
        given, path, Samples(), quant_format=q.QuantFormat[options["form"]],
        activation_type=act, weight_type=weight, extra_options=extra,
        per_channel=options.get("by_channel", False),
    )  # fmt: skip


Maker = Callable[[str, Path], pybuild.Model]


def _onnxruntime(form: str, act: str, weight: str, by_channel: bool = False) -> Maker:
    def make(name: str, path: Path) -> pybuild.Model:
        options = {"form": form, "act": act, "weight": weight}
        by_onnxruntime(float_model(name), path, by_channel=by_channel, **options)
        return pybuild.load(path)

    return make


def _float(name: str, path: Path) -> pybuild.Model:
    onnx.save(float_model(name), path)
    return pybuild.load(path)


def _pt2e(name: str, path: Path) -> pybuild.Model:
    data = (PT2 / f"{name}_int8.pt2").read_bytes()
    onnx.save(converted(whole_biases(read(name, data, {})))[0], path)
    return pybuild.load(PT2 / f"{name}_int8.pt2")


def _ours(name: str, path: Path) -> pybuild.Model:
    model, chance = _float(name, path), np.random.default_rng(1)
    some = [example(float_model(name), chance) for _ in range(8)]
    data = {key: np.stack([one[key] for one in some]) for key in some[0]}
    return pybuild.quantise(model, data).model


# as the columns of the page are called
FORMS: dict[str, Maker] = {
    "float": _float,
    "QDQ u8u8": _onnxruntime("QDQ", "u8", "u8"),
    "QDQ u8s8": _onnxruntime("QDQ", "u8", "s8"),
    "QDQ s8s8 by channel": _onnxruntime("QDQ", "s8", "s8", by_channel=True),
    "QDQ s16s8": _onnxruntime("QDQ", "s16", "s8"),
    "QOperator u8s8": _onnxruntime("QOperator", "u8", "s8"),
    "dynamic": _onnxruntime("dynamic", "u8", "s8"),
    "PT2E": _pt2e,
    "crt": _ours,
}


def measured(name: str, form: str) -> Cell:
    """One cell: made, built and compared, as a user does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        try:
            model = FORMS[form](name, path)
        except BuildError as error:
            return Cell("refused", why=str(error).splitlines()[0])
        except Exception as error:  # of a quantiser, which has classes of its own
            return Cell("no file", why=f"its quantiser: {str(error).split(' : ')[-1]}")
        try:
            library = model.build()
            ram = library.report.ram.arena
            ref = "numpy" if form == "crt" else "standard" if form == "PT2E" else "auto"
            found = check(path, library, ["llvm"], ref=ref, samples=SAMPLES)
        except BuildError as error:
            return Cell("refused", why=str(error).splitlines()[0])
    return Cell(_said(form, found), ram)


def _said(form: str, found: Any) -> str:
    tally = found.backends["llvm"]
    if not found.ok:
        return f"{max(tally.unequal, tally.mismatches)} unequal"
    for note in found.notes:
        if note.startswith(EQUAL_BUT):
            count = max(tally.unequal, tally.mismatches)
            return f"= but {count} {'at ties' if ' at ties' in note else 'rounded'}"
        if match := STEPS.search(note):
            return f"= std, {match[1] or '-'}"
    return "=" if not tally.unequal else f"= but {tally.unequal}"


def page(cells: Mapping[str, Mapping[str, Cell]]) -> str:
    lines = [*_HEAD, f"| | {' | '.join(FORMS)} |", f"|---|{'---|' * len(FORMS)}"]
    refusals: dict[str, None] = {}
    for name, row in sorted(cells.items()):
        shown = []
        for form in FORMS:
            cell = row.get(form)
            if cell is None:
                shown.append("")
                continue
            if cell.why:
                refusals[f"- {name}, {form}: {cell.why}"] = None
            shown.append(f"{cell.equal}; {cell.ram:,}" if cell.ram else cell.equal)
        lines.append(f"| {name} | {' | '.join(shown)} |")
    lines += _CAUSES
    if refusals:
        lines += ["", "Refused:", "", *refusals]
    return "\n".join(lines) + "\n"


_HEAD = """\
# Architectures and quantisers

Small networks of the architectures that people take, with seeded weights
(`tests/exported/zoo.py`, as PyTorch exports them), through the quantisers that they
take them through: onnxruntime.quantization in its forms (u8s8: activations uint8,
weights int8), PyTorch's PT2E with the XNNPACK quantiser, and `--quantise` here. Each
was built for any core, and run beside ONNX Runtime on three inputs (`crt check`); the
number after it is the arena in bytes.

- `=`: integers equal, floats within 1e-5 of the range.
- `= std, 2`: equal to the standard, which is the file's own nodes in float64; ONNX
  Runtime is up to 2 steps away from it. `-`: it gives real numbers there.
- `= but 3`: of all integers 3 are one step away from ONNX Runtime's.
- `= but 3 at ties`: 3 outputs differ from the standard, and the cause of each is proven
  to be a tie: each layer was computed in float64 from what the build's layer before it
  gave, and where an integer differs, its real value lies at the middle of two, as far
  as float32 resolves. `= but 3 rounded`: floats alike, further off than 1e-5 of their
  range, but no further than roundings of float32 in what their layer reads move them.
- `7 unequal`: that many values are further away, from the standard, too.
- PT2E is compared with the standard, biases being int32 as XNNPACK has them; `crt` with
  the numpy meaning of its own operators.
- ExecuTorch's quantisers for Arm (`tests/exported/export_arm.py`): of what
  `CortexMQuantizer` and `TOSAQuantizer` make of int8 every bit is PyTorch's, in
  integers; of TOSA's int16 with int8 weights too, in real numbers between its integers.

<!-- not run: it takes half an hour; tests/models/test_matrix.py makes a part of it -->
```sh
python -m tests.models.matrix
```

""".splitlines()


_CAUSES = """
What `crt check` says of one that is rounded otherwise:

    equal to the standard but for roundings of float32: 158 integers of all layers are
    at ties: their real values are at most 2e-05 steps beyond the middle of two,
    where float32 resolves 8e-05

## What recurrent layers and transformers take

On a Cortex-M4 (`crt bench FILE --on mps2-an386`, instructions of one inference,
counted by QEMU; gcc 12.2), at revision f15e026 and now; tables are bytes of flash,
without weights. The recurrent layers have 10 steps of 6 inputs and 12 units; more steps
make no more tables.

| | instructions then | now | per MAC | tables then | now |
|---|---:|---:|---:|---:|---:|
| gru, float | 133,773 | 54,208 | 8.3 | 5,204 | 368 |
| lstm, float | 93,140 | 71,703 | 8.3 | 3,972 | 416 |
| vit, float | | 1,375,978 | 5.3 | | |
| vit, QDQ s8s8 by channel | 1,732,780 | 1,199,106 | 4.6 | 5,408 | 4,752 |
| vit, crt | 1,356,302 | 1,031,433 | 4.0 | | 2,232 |
| conformer, float | | 275,541 | 6.8 | | |
| conformer, QDQ s8s8 by channel | 329,689 | 275,795 | 6.8 | 3,816 | 3,648 |
| conformer, crt | 258,147 | 239,718 | 5.9 | | 1,904 |

Nets of `crt`, calibrated with 100 samples here, have no float left but at their ends:
norms, attention, GELU and sums of residuals are int16, weights int8
([quantise.md](quantise.md)). With float32 around layers of int8, as they were before,
they took 1,078,631 and 251,325.
Heads of 8 numbers, as these nets have, are short: most of a product of two of them is
its 17 x 17 results.

Agreement is that of the greatest output with the float net's
(`pytest tests/models/test_transformers.py --all`):

| agreement | before | now |
|---|---:|---:|
| vit, 6,000 made inputs | 97.3 % | 99.6 % |
| conformer, 6,000 made inputs of 12 positions | 99.1 % | 99.8 % |

A Cortex-M3 has no unit for float32. What a net takes there (`crt bench FILE --quantise
DATA --on mps2-an385`, counted likewise), by what computes it:

| on a Cortex-M3 | vit before | vit | conformer before | conformer |
|---|---:|---:|---:|---:|
| linear layers, convolutions | 572,260 | 579,000 | 143,223 | 111,869 |
| products of two computed tensors | 2,523,166 | 224,256 | 416,822 | 37,440 |
| softmax | 2,104,433 | 96,228 | 344,054 | 16,531 |
| norms | 971,247 | 81,815 | 377,718 | 32,212 |
| GELU, SiLU, gates | 9,808 | 22,862 | 4,748 | 23,689 |
| sums of residuals, scale of attention | 181,139 | 81,735 | 43,829 | 23,121 |
| from float32 and back | 375,488 | 1,429,030 | 102,783 | 97,751 |
| all, with what only moves values | 6,813,949 | 2,568,523 | 1,474,518 | 365,003 |

The one float step left is at the ends, where the caller's float32 become int16 and the
results float32: 465 instructions for each number of the input on this core, which are
more than half of the ViT with its 3,072; a number of int8 takes 52 there.
""".splitlines()


def shown() -> dict[str, dict[str, str]]:
    """The page's table: architecture -> form -> what is said."""
    text = PAGE.read_text().partition("\nWhat `crt check` says")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in lines]
    forms = rows[0][1:]
    return {row[0]: dict(zip(forms, row[1:], strict=True)) for row in rows[2:]}


def _kept() -> dict[str, dict[str, Cell]]:
    """The cells of the page, of which none is refused."""
    found: dict[str, dict[str, Cell]] = {}
    for name, row in shown().items():
        cells = found.setdefault(name, {})
        for form, text in row.items():
            if text:
                equal, _, ram = text.partition("; ")
                cells[form] = Cell(equal, int(ram.replace(",", "") or 0))
    return found


def main(names: list[str]) -> None:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    cells = _kept() if names else {}
    for asked in names or NAMES:
        name, _, one = asked.partition(":")
        for form in [one] if one else FORMS:
            if form == "PT2E" and not (PT2 / f"{name}_int8.pt2").exists():
                continue
            cells.setdefault(name, {})[form] = cell = measured(name, form)
            print(name, form, cell, flush=True)
    PAGE.write_text(page(cells))


if __name__ == "__main__":
    main(sys.argv[1:])
