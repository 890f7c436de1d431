"""docs/models.md: what tests.models.matrix measured, as tables and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "models.md"
# of tools around ONNX and PyTorch, then of LiteRT's: each is a table
BY_ONNX = (
    "float", "QDQ u8u8", "QDQ u8s8", "QDQ s8s8 by channel", "QDQ s16s8",
    "QOperator u8s8", "dynamic", "PT2E", "crt",
)  # fmt: skip
BY_LITERT = (
    "LiteRT float", "int8 by tensor", "int8 by channel", "16x8", "dynamic range",
    "float16",
)  # fmt: skip
TABLES = (BY_ONNX, BY_LITERT)
_AFTER = "\nWhat `crt check` says"


@dataclass(frozen=True)
class Cell:
    """equal  "=", or what differs; why  of a refusal; ram  arena in bytes

    instructions  of one inference on a Cortex-M4
    """

    equal: str
    ram: int = 0
    instructions: int = 0
    why: str = ""

    def __str__(self) -> str:
        numbers = (self.ram, self.instructions)
        return "; ".join([self.equal, *(f"{number:,}" for number in numbers if number)])


def read(text: str) -> Cell:
    """A cell as it stands on the page."""
    equal, *numbers = text.split("; ")
    return Cell(equal, *(int(number.replace(",", "")) for number in numbers))


def page(cells: Mapping[str, Mapping[str, Cell]]) -> str:
    lines, refusals = list(_HEAD), []
    for forms in TABLES:
        lines += ["", f"| | {' | '.join(forms)} |", f"|---|{'---|' * len(forms)}"]
        for name, row in sorted(cells.items()):
            given = [str(row[form]) if form in row else "" for form in forms]
            lines.append(f"| {name} | {' | '.join(given)} |")
            refusals += [f"- {name}, {f}: {row[f].why}" for f in row if f in forms
                         and row[f].why]  # fmt: skip
    lines += _CAUSES
    if refusals:
        lines += ["", "Refused:", "", *refusals]
    return "\n".join(lines) + "\n"


def shown() -> dict[str, dict[str, str]]:
    """The page's tables: architecture -> form -> what is said."""
    text = PAGE.read_text().partition(_AFTER)[0]
    found: dict[str, dict[str, str]] = {}
    forms: list[str] = []
    for line in text.splitlines():
        if line.startswith("| | "):
            forms = [cell.strip() for cell in line.split("|")[2:-1]]
        elif line.startswith("| "):
            name, *row = (cell.strip() for cell in line.split("|")[1:-1])
            found.setdefault(name, {}).update(zip(forms, row, strict=True))
    return found


def kept() -> dict[str, dict[str, Cell]]:
    """The cells of the page, of which none is refused."""
    return {
        name: {form: read(text) for form, text in row.items() if text}
        for name, row in shown().items()
    }


_HEAD = """\
# Architectures and quantisers

Small networks of the architectures that people take, with seeded weights
(`tests/exported/zoo.py`, in PyTorch), through the quantisers that they take them
through: onnxruntime.quantization in its forms (u8s8: activations uint8, weights int8),
PyTorch's PT2E with the XNNPACK quantiser, and `--quantise` here; the second table:
litert-torch and then ai-edge-quantizer (`tests/exported/export_litert.py`), int8 by
tensor and by channel, int16 with weights of int8, dynamic range, float16. Each was
built for any core, and run beside ONNX Runtime or LiteRT's reference kernels on three
inputs (`crt check`). Then come the arena in bytes, and the instructions of one
inference on a Cortex-M4, built for it (`crt bench --on mps2-an386`; QEMU, gcc 12.2), at
revision a8fab36; the columns QDQ u8u8 and QOperator u8s8 at 7aa74c1.

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
- `0.1%`: of dynamic range, so far apart, at most, are outputs, of their range. A layer
  makes int8 of what it reads, as LiteRT's does (`=`); where a float differs in its last
  bit, one may round to the next. Weights of float16 stay float16 in flash on cores
  ([integers.md](integers.md#float16-weights-of-float32-layers)): that column is of the
  first revision that does so.
- ExecuTorch's quantisers for Arm (`tests/exported/export_arm.py`): of what
  `CortexMQuantizer` and `TOSAQuantizer` make of int8 every bit is PyTorch's, in
  integers; of TOSA's int16 with int8 weights too.
- litert-torch writes recurrent layers out, step by step. In float they become one step
  and a loop (tables of lstm: 717 bytes); ai-edge-quantizer gives each step scales of
  its own, and they stay written out (5,245 bytes). Of gpt_cached it drops the cache,
  which is zeros in each run: no state is left in the file.
- wav2vec2 of litert-torch in float: one of the three inputs is one number, of which a
  norm has nothing to divide by. LiteRT is 1.3e-4 of the range away from PyTorch in
  float64 there, the build 1.5e-4; with the other two both are within 5e-7.

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
| vit, crt | 1,356,302 | 801,792 | 3.1 | | 2,232 |
| conformer, float | | 275,541 | 6.8 | | |
| conformer, QDQ s8s8 by channel | 329,689 | 275,795 | 6.8 | 3,816 | 3,648 |
| conformer, crt | 258,147 | 195,153 | 4.8 | | 1,904 |

Nets of `crt`, calibrated with 100 samples here, have no float left but at their ends:
norms, attention, GELU and sums of residuals are int16, weights int8
([quantise.md](quantise.md)). With float32 around layers of int8, as they were before,
they took 1,078,631 and 251,325.
Heads of 8 numbers, as these nets have, are short: most of a product of two of them is
its 17 x 17 results.

A product of two computed tensors of int16 adds to sums of 64 bits, by an instruction
for one product (M3), two (M4) or eight (M55). What the products of a net, and all of
it, take (`--quantise`, by C; before: one product at a time, two rows by two columns):

| | products before | products | net before | net |
|---|---:|---:|---:|---:|
| vit, Cortex-M3 | 224,256 | 135,472 | 2,568,523 | 1,110,461 |
| vit, Cortex-M4 | 242,996 | 97,082 | 1,031,433 | 801,792 |
| vit, Cortex-M55 | 218,476 | 62,896 | 758,591 | 552,863 |
| conformer, Cortex-M3 | 37,440 | 21,160 | 365,003 | 249,102 |
| conformer, Cortex-M4 | 40,508 | 15,319 | 239,718 | 195,153 |
| conformer, Cortex-M55 | 36,352 | 9,646 | 187,043 | 152,662 |

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
| linear layers, convolutions | 572,260 | 541,950 | 143,223 | 100,329 |
| products of two computed tensors | 2,523,166 | 135,472 | 416,822 | 21,160 |
| softmax | 2,104,433 | 96,228 | 344,054 | 16,531 |
| norms | 971,247 | 65,495 | 377,718 | 26,068 |
| GELU, SiLU, gates | 9,808 | 22,862 | 4,748 | 23,689 |
| sums of residuals, scale of attention | 181,139 | 81,735 | 43,829 | 23,121 |
| from float32 and back | 375,488 | 113,122 | 102,783 | 15,776 |
| all, with what only moves values | 6,813,949 | 1,110,461 | 1,474,518 | 249,102 |

The one float step left is at the ends, where the caller's float32 become int16 and the
results float32. It took 465 instructions for each number of the input; by the integers
of a float32, and the division only near ties, it takes 37. A number of int8 takes 52
there.
""".splitlines()
