"""Programs written against microTVM's names, compiled as they are over --api tvm: here
with sanitizers, and on an emulated core. Results are those of pybuild's executor."""

from __future__ import annotations

import dataclasses
import functools
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pybuild.ecosystems.tvm import _apart, _members, ends
from pybuild.emit.tables.tables import TensorRow
from pybuild.entry import model_of
from pybuild.errors import BuildError
from pybuild.graph_builder import GraphBuilder
from pybuild.image import build_image
from pybuild.library import Library
from pybuild.targets.core import CORES
from tests.boards.programs import compiler, emulated, link_flags
from tests.graphs.networks import classifier
from tests.toolchains import SANITIZE, STRICT, require, run

PROGRAMS = Path(__file__).resolve().parent / "microtvm"
PICTURES = np.random.default_rng(7).integers(-128, 128, (3, 192)).astype(np.int8)
CORE = "cortex-m4"
# as users have it: their programs are not clean under more
WARNINGS = ("-Wall", "-Wextra", "-Wno-sign-compare")
# program -> its files and flags
SHAPES = {
    "bundle": (("bundle_static.c", "bundle_main.c"), ()),
    "aot": (("aot_main.c",), ()),
    "graph": (("graph_main.c",), ()),
    "zephyr": (("zephyr_aot.c",), ("-DTVM_PLATFORM_WORKSPACE",)),
    "zephyr-graph": (("zephyr_graph.c",), ()),
    "ti": (("ti.c",), ()),
}
# what semihosting has not, of a C library
EXIT = """\
#include "crt/port.h"
void exit(int code) { crt_port_exit(code); for (;;) ; }
"""


@functools.cache
def tree(target: str, params: str) -> tuple[tempfile.TemporaryDirectory[str], Library]:
    """A tree with --api tvm, and arrays of its files and of pictures beside it; params
    may be float32, for constants of that type."""
    folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory()
    place = Path(folder.name)
    given, kind = (None, params) if params == "float32" else (params or None, "int8")
    model = classifier("tiny", kind).model()
    made = model.build(place, name="tiny", target=target, api="tvm", params=given)
    graph = (place / "executor-config/graph/default.graph").read_bytes()
    assert graph.decode() == made.get_graph_json()
    data = (place / "parameters/default.params").read_bytes()
    (place / "graph.json.c").write_text(_array("graph_json", graph))
    (place / "params.bin.c").write_text(_array("params_bin", data))
    rows = ",\n".join(f"{{{', '.join(map(str, row))}}}" for row in PICTURES.tolist())
    text = f"enum {{ PICTURES = {len(PICTURES)} }};\n"
    text += f"static int8_t pictures[PICTURES][192] = {{{rows}}};\n"
    (place / "pictures.h").write_text(f"#include <stdint.h>\n{text}")
    (place / "exit.c").write_text(EXIT)
    return folder, made


def _array(name: str, data: bytes) -> str:
    """As xxd -i has it; aligned, for parameters that are read in place."""
    values = ", ".join(map(str, data))
    aligned = "__attribute__((aligned(16)))"
    text = f"unsigned char {name}[] {aligned} = {{{values}}};\n"
    return text + f"unsigned int {name}_len = {len(data)};\n"


def sources(place: Path) -> list[Path]:
    """C of the tree."""
    ours = ("exit.c", "graph.json.c", "params.bin.c", "main.c")
    return [p for p in sorted(place.rglob("*.c")) if p.name not in ours]


@functools.cache
def objects(target: str, params: str, flags: tuple[str, ...] = ()) -> tuple[Path, ...]:
    """The tree, compiled strictly; here in an archive, as its Makefile does it: for
    tvmgen_default_run alone a program defines no TVMPlatform..."""
    folder, _ = tree(target, params)
    place = Path(folder.name)
    kind = _flags(target)
    made = []
    for source in sources(place):
        out = source.with_suffix(f".{len(flags)}.o")
        own = ["-I", place, "-I", place / "crt/include"]
        run([*kind, *STRICT, *own, *flags, "-c", source, "-o", out])
        made.append(out)
    if target != "host":
        return tuple(made)
    archive = place / f"libtree{len(flags)}.a"
    run(["ar", "rcs", archive, *made])
    return (archive,)


def _flags(target: str) -> list[str]:
    if target == "host":
        return [require("gcc"), "-O1", *SANITIZE["gcc"]]
    return [*compiler(CORES[target]), "-Os"]


def program(
    target: str,
    files: Sequence[str],
    flags: tuple[str, ...] = (),
    params: str = "",
) -> str:
    """Compiles a program as it is, links and runs it; what it prints."""
    folder, _ = tree(target, params)
    place = Path(folder.name)
    built = [f for f in flags if f == "-DTVM_PLATFORM_WORKSPACE"]
    linked = objects(target, params, tuple(built))
    own = ["-I", place, "-I", place / "crt/include", "-I", PROGRAMS]
    command = [*_flags(target), "-std=gnu99", *WARNINGS, "-Werror", *flags, *own]
    command += [PROGRAMS / name for name in files]
    out = place / f"program-{Path(files[0]).stem}"
    if target == "host":
        run([*command, *linked, "-o", out])
        return run([out])
    link = link_flags(target, place)
    run([*command, place / "exit.c", *linked, *link, "-lc", "-o", out])
    return emulated(target, out)


def wanted(made: Library) -> list[list[int]]:
    net = made.host()
    shaped = PICTURES.reshape(-1, 1, 8, 8, 3)
    return [net.run(image=x)["scores"].ravel().tolist() for x in shaped]


def numbers(said: str) -> list[list[int]]:
    lines = [x for x in said.splitlines() if re.fullmatch(r"(-?\d+ ){5}", x)]
    return [list(map(int, line.split())) for line in lines]


@pytest.mark.parametrize("target", ["host", CORE])
@pytest.mark.parametrize("shape", SHAPES)
def test_programs_run_as_they_are(shape: str, target: str) -> None:
    files, flags = SHAPES[shape]
    said = program(target, files, flags)
    _, made = tree(target, "")
    expected = wanted(made)
    assert expected[0] != expected[1]
    assert numbers(said) == expected * (2 if shape == "graph" else 1)
    if shape == "ti":
        assert "TVMPlatformAbort: 1280" in said
        assert "set_input: failed" in said


@pytest.mark.parametrize("shape", ["aot", "graph", "zephyr-graph"])
def test_parameters_come_at_run_time(shape: str) -> None:
    files, flags = SHAPES[shape]
    said = program("host", files, flags, params="replaceable")
    _, made = tree("host", "replaceable")
    assert numbers(said) == wanted(made) * (2 if shape == "graph" else 1)


def test_what_is_of_another_build_is_refused() -> None:
    said = program("host", ("graph_main.c",)).splitlines()
    with_image = program("host", ("graph_main.c",), params="replaceable")
    assert "803\nparameter image" in with_image
    found = [line for line in said if not re.fullmatch(r"(-?\d+ )+", line)]
    assert found[0] == "803"
    assert "give executor-config/graph/default.graph of crt build, or NULL" in found[1]
    assert found[2:6] == ["803", "700", "701", "803"]
    assert "build with --params replaceable" in found[6]
    assert found[7:12] == ["803", "-1", "-1", "100", "100"]
    assert "call TVMGraphExecutor_Run, or tvmgen_default_run" in found[12]
    assert found[13:] == ["mine"]


MISTAKES = {
    1: "TVMGraphExecutor_Run: an input was never given",
    2: "TVMGraphExecutor_SetInput: no tensor of this name",
    3: "TVMGraphExecutor_SetInput: array is of another shape than the tensor",
    4: "TVMGraphExecutor_SetInput: array is of another type than the tensor",
    5: "TVMGraphExecutor_SetInput: array has gaps, or another order of elements",
    6: "TVMGraphExecutor_SetInput: NULL pointer, or NAME_init was not called",
    7: "TVMGraphExecutor_GetOutput: no tensor or stage of this number",
    8: "TVMGraphExecutor_GetOutput: no output: not run yet, or overwritten since",
    9: "TVMGraphExecutor_GetOutput: array is of another shape than the tensor",
}


@pytest.mark.parametrize("which", MISTAKES)
def test_mistakes_end_in_the_program_s_abort(which: int) -> None:
    said = program("host", ("graph_main.c",), (f"-DMISTAKE={which}",))
    assert said.splitlines() == [MISTAKES[which], "TVMPlatformAbort: 500"]


def test_pointers_need_no_alignment() -> None:
    said = program("host", ("unaligned.c",), params="float32")
    assert said.splitlines() == ["aot 0", "aot 0", "graph 0", "other 1", "after 0"]


@pytest.mark.parametrize("target", ["host", CORE])
def test_allocators(target: str) -> None:
    assert program(target, ("allocators.c",)) == "done\n"


def test_headers_are_c_plus_plus(tmp_path: Path) -> None:
    """Sketches include them; sizes are those of DLPack 0.8."""
    folder, _ = tree("host", "")
    place = Path(folder.name)
    headers = sorted((place / "tvm/runtime").rglob("*.h"))
    headers.append(place / "tvmgen_default.h")
    lines = [f'#include "{p.relative_to(place)}"\n' for p in headers]
    assert len(lines) == 14
    sizes = "sizeof(DLTensor) == 48 && sizeof(DLDataType) == 4"
    lines.append(f'static_assert({sizes}, "DLPack");\n')
    source = tmp_path / "all.cpp"
    source.write_text("".join(lines))
    flags = ["-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    run([require("g++"), *flags, f"-I{place}", "-fsyntax-only", source])


# ---- names -----------------------------------------------------------------------


def _named(*outputs: str) -> Library:
    graph = GraphBuilder("named")
    first = graph.input("serving_default_x:0", (1, 4), "int8", (0.1, 0))
    second = graph.input("a/b", (1, 4), "int8", (0.1, 0))
    total = graph.op("add", first, second, quant=(0.2, 0))
    graph.output(total, outputs[0])
    for name in outputs[1:]:
        graph.output(graph.op("logistic", total, quant=(1 / 256, -128)), name)
    return model_of(graph.build()).build(name="named", api="tvm:kws")


def test_names_are_those_of_tvm() -> None:
    """Other characters are underscores; an output may be called `output`, too."""
    files = _named("StatefulPartitionedCall:0").generated()
    header = str(files["tvmgen_kws.h"])
    for text in (
        "    void *serving_default_x_0;\n    void *a_b;\n",
        "        void *StatefulPartitionedCall_0;\n        void *output;\n",
        "#define TVMGEN_KWS_SERVING_DEFAULT_X_0_SIZE 4\n",
        "#define TVMGEN_KWS_STATEFULPARTITIONEDCALL_0_SIZE 4\n",
        "#define TVMGEN_KWS_OUTPUT_SIZE 4\n",
        "int32_t tvmgen_kws_run(struct tvmgen_kws_inputs *inputs,",
    ):
        assert text in header
    assert '{"serving_default_x:0"}, {"a/b"}' in str(files["tvmgen_kws.c"])
    assert "tvm/src/graph_executor.c" not in files  # one system library a program


def test_names_that_clash_are_those_of_the_model() -> None:
    rows = _named("y:0", "y/0").tables.outputs
    assert [end.field for end in ends(rows)] == [row.symbol for row in rows]
    assert [e.other for e in ends(rows, "output")] == ["output0", "output1"]
    word = dataclasses.replace(rows[0].tensor, name="int")
    row = dataclasses.replace(rows[0], tensor=word)
    assert ends([row])[0].field == row.symbol


TWO = """\
#include <stdio.h>
#include "tvmgen_kws.h"

static float x[1] = {-0.5f}, w[1] = {0.25f};
static unsigned char y[5], z[5];

int main(void)
{
    struct tvmgen_kws_inputs in = {x, w};
    struct tvmgen_kws_outputs out = {{y + 1}, {z + 1}};

    for (int turn = 0; turn < 2; turn++) {
        printf("%d\\n", (int)tvmgen_kws_run(&in, &out));
        for (int i = 0; i < 4; i++) {
            printf("%d %d\\n", y[1 + i], z[1 + i]);
            y[1 + i] = z[1 + i] = 0;
        }
    }
    return 0;
}
"""


def test_two_outputs_need_no_alignment(tmp_path: Path) -> None:
    graph = GraphBuilder("two")
    x, w = graph.input("x", (1, 1), "float32"), graph.input("w", (1, 1), "float32")
    graph.output(graph.op("add", x, w), "y")
    graph.output(graph.op("mul", x, w), "z")
    model_of(graph.build()).build(tmp_path, name="two", api="tvm:kws")
    (tmp_path / "main_two.c").write_text(TWO)
    own = ["-I", tmp_path, "-I", tmp_path / "crt/include"]
    flags = [require("gcc"), "-std=gnu99", *SANITIZE["gcc"], *own]
    run([*flags, *sources(tmp_path), "-lm", "-o", tmp_path / "two"])
    numbers = np.float32([-0.5 + 0.25]), np.float32([-0.5 * 0.25])
    both = np.stack([n.view(np.uint8) for n in numbers], -1).ravel()
    assert run([tmp_path / "two"]).split() == ["0", *map(str, both)] * 2


def test_names_that_others_have_are_those_of_the_model() -> None:
    row = _named("y:0", "y/0").tables.inputs[0]

    def named(name: str) -> TensorRow:
        return dataclasses.replace(
            row, tensor=dataclasses.replace(row.tensor, name=name)
        )

    for name in ("NULL", "INT8_MAX", "_Bool", "__LINE__", "TVMGEN_UNIONS", "1x"):
        assert ends([named(name)])[0].field == row.symbol
    (apart,) = _apart(ends([named("workspace")]), {"WORKSPACE"})
    assert apart.field == row.symbol
    assert "uint8_t none" in _members([])
    with pytest.raises(BuildError, match="--name: 'tvmgen_default' is what --api tvm"):
        classifier("tiny").model().build(name="tvmgen_default", api="tvm")


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"regions": ["fast=512:fast", "slow=64K"]}, "--region"),
        ({"push": "image"}, "--push"),
        ({"params": "replaceable", "compress": "lz4"}, "--compress"),
        ({"target": {0: "cortex-m4", 1: "cortex-m0"}}, "--device"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: dict[str, object], where: str
) -> None:
    with pytest.raises(BuildError, match=f"{where}: does not go with --api tvm"):
        classifier("tiny").model().build(api="tvm", **options)  # type: ignore[arg-type]


def test_several_models_are_built_each_by_itself() -> None:
    models = {"a": classifier("a").model(), "b": classifier("b").model()}
    with pytest.raises(BuildError, match="--api tvm:MODULE"):
        build_image(models, api="tvm")
    with pytest.raises(BuildError, match="tvm, or tvm:MODULE"):
        models["a"].build(api="tflm")
