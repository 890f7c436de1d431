"""A core that stores the high byte first and has an int64 for size_t, s390x in QEMU:
crt's tests and networks, whose results have the bits of this machine; and what is
refused there, for it would be wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import pybuild
from pybuild.install import crt_include
from tests.boards.devices import DIGITS
from tests.conftest import made_once
from tests.crt.test_crt import HERE, PROGRAMS
from tests.evidence.nets import DIGITS as FOLDER
from tests.evidence.nets import STREAMS
from tests.evidence.test_same_bits import FLAT
from tests.graphs.networks import classifier
from tests.toolchains import INCLUDE, SOURCES, STRICT, require, run

GCC, QEMU = "s390x-linux-gnu-gcc", "qemu-s390x-static"
PARTS = ("-ffunction-sections", "-Wl,--gc-sections")  # of crt what is called
# else gcc computes floats as doubles there, as FLT_EVAL_METHOD says, when C is standard
ROUNDED = "-fexcess-precision=fast"
# with parameters, whose images are used in place, so not there
REFUSED = ("test_params.c", "test_weights.c", "test_devices.c", "test_rpc.c",
           "test_rpc_key.c", "test_calls.c", "test_images.c")  # fmt: skip
CRT = [path for path in SOURCES if path.stem != "params"]
REFUSAL = "words are little-endian here"
NETS = ("whole", "real", "int16", "gru", "pushed", "packed")

# its self-test, its checksums, and its result as bits
RUN = """\
    {{
        static struct {name} m;
        struct {name}_memory memory = {upper}_MEMORY(arena);
        static {kind} bits[{count}];
        int i;

        memory.arena.bytes = sizeof arena;
        printf("{name} %d", {name}_init(&m, &memory));
        printf(" %d", {name}_selftest(&m));
        printf(" %d:", {name}_verify(NULL, 0));
        printf(" %d", crt_graph_get_output(&m.graph, 0, bits, sizeof bits));
        for (i = 0; i < {count}; i++)
            printf(" %ld", (long)bits[i]);
        printf("\\n");
    }}
"""
PROGRAM = """\
@includes
#include <stdio.h>

static int8_t arena[65536] __attribute__((aligned(16)));

int main(void)
{
@runs    return 0;
}
"""


def _build(name: str, folder: Path) -> pybuild.Library:
    """Generic C: of int8, of floats, with layers of int16, with a state, fed by rows,
    and with packed bytes."""
    common = {"name": name, "verify": True}
    match name:
        case "whole" | "real":
            kind = "int8" if name == "whole" else "float32"
            return classifier(name, kind).model().build(folder, **common)
        case "int16":
            samples = FOLDER / "digits_calibration.npz"
            float32 = FOLDER / "digits_f32.onnx"
            model = pybuild.quantise(float32, samples, int16=["conv", "dense"])
            return model.build(folder, **common)
        case "gru":
            model = pybuild.load(STREAMS / "gru.onnx", state={"h": "h_next"})
            return model.build(folder, **common)
        case "pushed":
            return pybuild.load(DIGITS).build(folder, push="image", **common)
        case _:
            return pybuild.load(DIGITS).build(folder, compress="lz4-layer", **common)


def _make(folder: Path) -> None:
    runs = ""
    for name in NETS:
        library = _build(name, folder / name)
        (first, *_) = library.tables.outputs
        kind = f"int{8 * first.tensor.dtype.numpy.itemsize}_t"
        count = first.tensor.size
        runs += RUN.format(name=name, upper=name.upper(), kind=kind, count=count)
    heads = "".join(f'#include "{name}.h"\n' for name in NETS)
    text = PROGRAM.replace("@includes", heads).replace("@runs", runs)
    (folder / "main.c").write_text(text)


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "byte_order", _make)


def _program(trees: Path, folder: Path, command: Sequence[str]) -> str:
    """Compiled of all networks."""
    sources = [path for name in NETS for path in sorted((trees / name).glob("*.c"))]
    places = [f"-I{trees / name}" for name in NETS]
    flags = [*STRICT, FLAT, "-DCRT_WITH_SELFTEST", *places, f"-I{crt_include()}"]
    program = folder / "program"
    run([*command, *flags, *PARTS, trees / "main.c", *sources, *CRT, "-o", program])
    return str(program)


def test_networks_have_the_bits_of_this_machine(trees: Path, tmp_path: Path) -> None:
    here = run([_program(trees, tmp_path, [require("gcc")])])
    there = _program(trees, tmp_path, [require(GCC), "-static", ROUNDED])
    lines = here.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"{n} 0 0 0" for n in NETS]
    assert run([require(QEMU), there]) == here


FLAGS = (*STRICT, *PARTS, f"-I{INCLUDE}", f"-I{HERE}")


def _make_crt(folder: Path) -> None:
    folder.mkdir()
    run([require(GCC), *FLAGS, "-c", *CRT], folder)


@pytest.fixture(scope="module")
def crt(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Its objects."""
    return sorted(made_once(tmp_path_factory, "crt_s390x", _make_crt).glob("*.o"))


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p not in REFUSED])
def test_crt_passes_its_tests(program: str, crt: list[Path], tmp_path: Path) -> None:
    assert len(crt) == len(CRT)
    command = [require(GCC), *FLAGS, "-static", HERE / program, *crt]
    run([*command, "-o", tmp_path / "test"])
    assert run([require(QEMU), tmp_path / "test"]) == ""


def _refused(folder: Path, file: str) -> None:
    command = [require(GCC), "-std=c99", f"-I{folder}", f"-I{crt_include()}"]
    words = [*command, "-fsyntax-only", str(folder / file)]
    made = subprocess.run(words, capture_output=True, text=True)
    assert made.returncode != 0 and REFUSAL in made.stderr


@pytest.mark.parametrize(
    ("options", "file"),
    [
        ({"params": "replaceable"}, "crt/src/params.c"),  # images in place
        ({"compress": "lz4"}, "crt/src/params.c"),
        ({"compress": "lz4-layer"}, "net.c"),  # floats, packed
        ({"target": "cortex-m4"}, "net.c"),  # four bytes are loaded as a word
    ],
)
def test_what_would_be_wrong_is_refused(
    options: dict[str, str], file: str, tmp_path: Path
) -> None:
    name = "digits_int8.onnx" if "target" in options else "digits_f32.onnx"
    pybuild.load(FOLDER / name).build(tmp_path, name="net", **options)
    _refused(tmp_path, file)
