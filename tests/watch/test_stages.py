"""`crt inspect --stage`: what is shown of each stage is what the build has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import pytest

import pybuild
from pybuild.cli import main
from pybuild.emit.kernels import c
from pybuild.ir.loop_parse import parse
from pybuild.library import Library
from pybuild.options.table import STAGES
from pybuild.package.grid import Grid, Page
from pybuild.watch.stages import stage_page
from tests.toolchains import ROOT, require_module

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"


@pytest.fixture(scope="module")
def library() -> Library:
    return pybuild.load(DIGITS).build(target="cortex-m4", name="digits")


def lines(library: Library, stage: str, layer: str | None = None) -> list[str]:
    return lines_of(stage_page(library, stage, layer))


def lines_of(page: Page) -> list[str]:
    return [line for one in page if isinstance(one, str) for line in one.splitlines()]


def test_passes_lead_from_the_file_to_the_final_graph(library: Library) -> None:
    """Every line taken and put in, in turn, gives the lines of the last graph."""
    have: list[str] = []
    for line in lines(library, "passes"):
        if line[:2] == "  ":
            have.append(line[2:])
        elif line[:2] == "- ":
            have.remove(line[2:])
        elif line[:2] == "+ ":
            have.append(line[2:])
    graph = library.plan.graph
    made = {line.partition(":")[0] for line in have}
    assert len(have) == len(graph.nodes)
    assert made == {graph.shown(node.output) for node in graph.nodes}
    mine = lines(library, "passes", "pointwise")
    assert len([line for line in mine if line[:2] == "  "]) == 1


def test_kernels_have_the_prices_of_the_report(library: Library) -> None:
    for choice in library.report.kernels:
        (table,) = stage_page(library, "kernels", choice.layer)
        assert isinstance(table, Grid)
        shown = [row[1:3] + row[4:5] for row in table.rows if row[0] == "chosen"]
        sizes = f"{choice.instructions:,}", f"{choice.bytes:,}"
        assert shown == [(choice.kernel, *sizes)]
        others = {row[1] for row in table.rows if row[0] != "chosen"}
        assert others == {other.kernel for other in choice.alternatives}


def test_a_kernel_in_its_languages(library: Library) -> None:
    """Loops read back, and C, are those of the generated file."""
    source = library.sources()["digits.c"]
    for func, users in library.tables.kernels:
        (_, text) = stage_page(library, "loop", users[0].layer)
        assert parse(str(text)) == func
        (_, text) = stage_page(library, "c", users[0].layer)
        assert text == c.function(func) and str(text).splitlines()[-2] in source
        (_, text) = stage_page(library, "llvm", users[0].layer)
        assert f"@{func.name}(" in str(text)


def test_assembly_is_counted(library: Library) -> None:
    for head, body in zip(*[iter(stage_page(library, "asm"))] * 2, strict=True):
        found = str(body).splitlines()
        code = [line for line in found if line[0].isspace()]
        assert f": {len(code)} instructions of cortex-m4" in str(head)
        in_blocks = sum(int(line.split()[-2]) for line in found if line[0] == ".")
        first = next((i for i, line in enumerate(found) if line[0] == "."), len(found))
        assert in_blocks + first == len(code)
    steps, *_ = stage_page(library, "plan")
    assert isinstance(steps, Grid)
    heads = [str(head) for head in stage_page(library, "asm")[::2]]
    for _, _, layer, kernel, calls, *_ in steps.rows:
        (said,) = [head for head in heads if head.startswith(f"@ {kernel}:")]
        assert f", called {calls} time" in said and layer in said
    kernels = {func.name for func, _ in library.tables.kernels}
    assert all(f"@ {name}:" in "\n".join(heads) for name in kernels)
    assert any("smlad" in line for line in lines(library, "asm"))


def executions(page: Iterable[object]) -> int:
    """Of all lines of assembly with a count before them."""
    text = "\n".join(str(one) for one in page)
    counts = re.findall(r"^ *([\d,]+) \t", text, re.MULTILINE)
    return sum(int(count.replace(",", "")) for count in counts)


def test_each_line_says_how_often_it_is_executed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What bench counts of each kernel is what its lines say, in all."""
    require_module("unicorn")
    board = ["--on", "netduinoplus2", "--simulator", "unicorn", "--emit", "obj"]
    words = [str(DIGITS), *board, "--target", "cortex-m4", "--json"]
    assert main(["bench", *words]) == 0
    kernels = json.loads(capsys.readouterr().out)["worst"]["kernels"]
    counted = sum(k["counted"] for k in kernels if k["name"] != "digits_int8_run")
    assert main(["inspect", *words, "--stage", "asm"]) == 0
    found = json.loads(capsys.readouterr().out)["found"]
    assert executions(found) == counted > 10_000
    # without it: lines as they stand
    page = stage_page(pybuild.load(DIGITS).build(target="cortex-m4"), "asm")
    assert executions(page) == 0
    # where the program is not what the text says, it says so
    ran = {"conv2d_dsp_pointwise_run8_by4": [(1, False)]}
    library = pybuild.load(DIGITS).build(target="cortex-m4", name="digits")
    text = "\n".join(lines_of(stage_page(library, "asm", "pointwise", ran)))
    assert "@ the linker made 1 instructions of 33: how often" in text
    for stage in ("plan", None):
        stages = [] if stage is None else ["--stage", stage]
        assert main(["inspect", str(DIGITS), *board, *stages]) == 64
        assert "--on: applies to --stage asm only" in capsys.readouterr().err


def test_the_plan_is_that_of_the_report(library: Library) -> None:
    steps, *_, memory, size = stage_page(library, "plan")
    assert isinstance(steps, Grid) and len(steps.rows) == len(library.plan.steps)
    assert isinstance(memory, Grid)
    assert f"arena {library.report.ram.arena:,} bytes" in str(size)


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    for stage in STAGES:
        words = ["inspect", str(DIGITS), "--target", "cortex-m4", "--stage", stage]
        assert main([*words, "pointwise", "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["stage"] == stage and "pointwise" in str(facts["found"])
    assert main(["inspect", str(DIGITS), "--stage", "loop", "pointwize"]) == 64
    said = capsys.readouterr().err
    assert said.startswith("--stage: there is no layer 'pointwize'. Hint: did you mean")
    assert main(["inspect", str(DIGITS), "--stage", "asm"]) == 64
    said = capsys.readouterr().err
    assert said == (
        "--stage: asm needs a core, which 'generic' is not. Hint: --target cortex-m4\n"
    )
    assert main(["inspect", str(DIGITS), "--stage", "all"]) == 64
