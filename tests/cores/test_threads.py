"""A model on several cores, which are threads here: no race, and one core's bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybuild.emit.content import pieces
from pybuild.library import Library
from tests.cores.nets import small
from tests.toolchains import require, run

HERE = Path(__file__).resolve().parent


def _program(library: Library, folder: Path) -> Path:
    for file, content in library.files().items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(b"".join(pieces(content)))
    name = library.name
    tensors = library.tables.inputs[0].tensor, library.tables.outputs[0].tensor
    defines = {
        "HEADER": f'"{name}.h"',
        "MODEL": name,
        "UPPER": name.upper(),
        "INPUT_BYTES": tensors[0].bytes,
        "OUTPUT_BYTES": tensors[1].bytes,
    }
    if tensors[0].dtype.is_float:
        defines["FLOATS"] = 1
    flags = ["-std=c99", "-O1", "-g", "-D_GNU_SOURCE", "-fsanitize=thread", "-pthread"]
    sources = [f"{name}.c", f"{name}_weights.c"]
    files = [*(folder / s for s in sources), *(folder / "crt/src").glob("*.c")]
    run([require("gcc"), *flags, *(f"-D{k}={v}" for k, v in defines.items()),
         f"-I{folder}", f"-I{folder / 'crt/include'}", HERE / "threads.c", *files,
         "-o", folder / "threads"])  # fmt: skip
    return folder / "threads"


@pytest.mark.parametrize(
    ("target", "cores", "kind"),
    [("cortex-m0", 2, "int8"), ("cortex-m33", 3, "int8"), ("rv32imc", 4, "int8"),
     ("generic", 2, "float32")],
)  # fmt: skip
def test_no_race_and_the_same_bits(
    target: str, cores: int, kind: str, tmp_path: Path
) -> None:
    library = small(kind).build(target=target, cores=cores)
    assert library.tables.cores == cores
    assert run([_program(library, tmp_path)]) == ""
