"""The program of docs/two-cores.md, built and run with threads as cores."""

from __future__ import annotations

import re
from pathlib import Path

import pybuild
from pybuild.emit.content import pieces
from tests.toolchains import require, run

ROOT = Path(__file__).resolve().parents[2]


def test_the_program_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "two-cores.md").read_text()
    found = re.findall(r"test_page.py -->\n```c\n(.*?)```", page, re.DOTALL)
    program, pico = found
    model = pybuild.load(ROOT / "examples/digits/digits_int8.tflite")
    library = model.build(name="digits", target="cortex-m33", cores=2)
    for file, content in library.files().items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(b"".join(pieces(content)))
    (tmp_path / "program.c").write_text(program)
    names = ["program.c", "digits.c", "digits_weights.c"]
    files = [*(tmp_path / n for n in names), *(tmp_path / "crt/src").glob("*.c")]
    flags = ["-std=c99", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pthread"]
    include = [f"-I{tmp_path}", f"-I{tmp_path / 'crt/include'}"]
    run([require("gcc"), *flags, *include, *files, "-o", tmp_path / "program"])
    assert run([tmp_path / "program"]) == "0\n"
    (tmp_path / "pico").mkdir()
    head = "void multicore_launch_core1(void (*entry)(void));\n"
    (tmp_path / "pico" / "multicore.h").write_text(head)  # in the SDK's place
    (tmp_path / "pico.c").write_text(pico)
    run([require("gcc"), *flags, *include, "-fsyntax-only", tmp_path / "pico.c"])
    use = library.report.cores
    assert use is not None and (use.cores, use.sliced) == (2, 4)
    arena = f"arena {library.tables.arena_bytes:,} instead of {use.arena:,} bytes"
    line = f"cores  2: {use.share:.2f} of one core's instructions by estimate, 4 of"
    assert line in page and arena in page
