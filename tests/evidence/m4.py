"""A network, crt and what tests call of both, linked for an emulated Cortex-M4."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.boards.programs import chain, compiler
from tests.objects.images import CORES, HERE
from tests.toolchains import ROOT, STRICT, run

EVIDENCE = ROOT / "tests" / "evidence"


def linked(tree: Path, program: str, image: Path, *flags: str) -> Path:
    """tree  of `crt build --name net`, as C or with an object

    program  of this folder, whose functions tests call
    """
    core = CORES["cortex-m4"]
    sources: Sequence[Path] = [
        *sorted(tree.glob("net*.[co]")), *sorted((tree / "crt/src").glob("*.c")),
        HERE / "runner.c", EVIDENCE / program,
    ]  # fmt: skip
    tools = chain(core, "gcc")
    run([*compiler(core), *STRICT, "-Os", "-DCRT_NO_STRING_H", *flags,
         f"-I{tree}", f"-I{tree / 'crt/include'}", *sources,
         *tools.link_flags(core, str(HERE / "image.ld")), *tools.libraries(core),
         "-o", image])  # fmt: skip
    return image
