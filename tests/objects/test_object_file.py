"""--emit obj without any tool chain: made by a bare process, the same bytes every
time, and the ELF file says and holds what it must."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as binding
import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

import pybuild
from pybuild import errors
from pybuild.emit.llvm import contents
from pybuild.emit.llvm.model import ABI
from pybuild.emit.llvm.object import machine_of
from pybuild.emit.tables import tables
from pybuild.ir.loop import Part
from pybuild.ir.loop_verify import statements
from pybuild.model import Library
from pybuild.targets.llvm import LLVM, llvm_named
from tests.conftest import model_path
from tests.graphs.networks import classifier
from tests.objects.models import content
from tests.toolchains import ROOT

MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"
COMMAND = [sys.executable, "-m", "pybuild.cli", "build", MODEL, "--name", "digits"]
HARD = ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55")
# Tag_CPU_arch of the ARM ABI's addenda
ARCHITECTURES = {
    "cortex-m0": 12, "cortex-m3": 10, "cortex-m4": 13, "cortex-m7": 13,
    "cortex-m33": 17, "cortex-m55": 21,
}  # fmt: skip
# of the C library and of the compiler's own: what C of the same kernels needs too
KNOWN = {
    "memset", "memcpy", "memmove", "__divsi3", "__muldi3", "__divdi3", "crt_lockstep",
}  # fmt: skip
ARITHMETIC = ("__aeabi_", "__ashl", "__ashr", "__lshr", "__add", "__sub", "__mul",
              "__div", "__eq", "__ne", "__lt", "__le", "__gt", "__ge", "__un",
              "__fix", "__float")  # fmt: skip


def made(target: str, kind: str = "int8", **options: str) -> Library:
    model = classifier("tiny", kind).model()
    return model.build(name="tiny", target=target, emit="obj", **options)


def elf(library: Library) -> ELFFile:
    return ELFFile(io.BytesIO(content(library)))


def sections(file: ELFFile) -> dict[str, int]:
    """Name -> bytes of everything that goes to flash."""
    flash = [s for s in file.iter_sections() if s["sh_flags"] & 2 and s["sh_size"]]
    assert not [s.name for s in flash if s["sh_flags"] & 1], "writable data"
    return {s.name: s["sh_size"] for s in flash}


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(
            t, marks=[] if t in ("cortex-m4", "rv32imc") else pytest.mark.sweep
        )
        for t in LLVM
    ],
)
def test_a_bare_process_makes_the_same_bytes_anywhere(
    target: str, tmp_path: Path
) -> None:
    trees = []
    for seed in ("1", "77"):
        folder = tmp_path / seed / "deep"
        folder.mkdir(parents=True)
        env = {"PATH": "", "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        command = [*COMMAND, "--target", target, "--emit", "obj", "-o", "out"]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b""
        paths = sorted(p for p in (folder / "out").rglob("*") if p.is_file())
        trees.append({p.relative_to(folder): p.read_bytes() for p in paths})
    assert trees[0] == trees[1]
    held = trees[0][Path("out/digits.o")]
    kind = b"\x02" if target.startswith("rv64") else b"\x01"  # bits of an address
    assert held[:5] == b"\x7fELF" + kind and str(ROOT).encode() not in held
    names = {path.name for path in trees[0]}
    assert "digits_functions.c" in names
    assert not names & {"digits.c", "digits_weights.c"}


def test_without_llvm_of_this_process_nothing_differs() -> None:
    """The host's JIT before it, in one process, changes no byte."""
    first = made("cortex-m4").compiled()
    made("cortex-m4").host("llvm").close()
    assert made("cortex-m4").compiled() == first


@pytest.mark.parametrize("target", LLVM)
def test_the_file_says_what_it_is_for(target: str) -> None:
    file = elf(made(target))
    assert file["e_type"] == "ET_REL" and file.little_endian
    # of programs that an operating system loads the note stays
    kept, gone = ".note.GNU-stack", ".comment.kernel"
    kept, gone = (kept, gone) if target == "rv64gcv" else (gone, kept)
    assert file.get_section_by_name(gone) is None
    assert file.get_section_by_name(kept)["sh_size"] == 0
    if target.startswith("rv"):
        assert file["e_machine"] == "EM_RISCV"
        # in registers of their own
        doubles = 4 if target in ("rv32imcv", "rv64gcv") else 0
        assert file["e_flags"] == 1 + doubles  # compressed instructions, the ABI
        return
    assert file["e_machine"] == "EM_ARM" and file["e_flags"] == 0x05000000
    tags = _attributes(file)
    assert tags["TAG_CPU_ARCH"] == ARCHITECTURES[target]
    assert tags["TAG_CPU_ARCH_PROFILE"] == ord("M")
    # 1: floats are passed in its registers; absent: in those of integers
    assert tags.get("TAG_ABI_VFP_ARGS") == (1 if target in HARD else None)
    assert ("TAG_FP_ARCH" in tags) == (target in HARD)
    aligned_only = tags["TAG_CPU_UNALIGNED_ACCESS"] == 0
    assert aligned_only == (target == "cortex-m0")


def _attributes(file: ELFFile) -> dict[str, int]:
    section = file.get_section_by_name(".ARM.attributes")
    (part,) = section.iter_subsections()
    (whole,) = part.iter_subsubsections()
    return {tag.tag: tag.value for tag in whole.iter_attributes()}


@pytest.mark.parametrize("target", LLVM)
@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_one_name_out_and_few_in(target: str, kind: str) -> None:
    table = elf(made(target, kind)).get_section_by_name(".symtab")
    symbols = [s for s in table.iter_symbols() if s["st_info"]["bind"] == "STB_GLOBAL"]
    wanted = {s.name for s in symbols if s["st_shndx"] == "SHN_UNDEF"}
    assert {s.name for s in symbols} - wanted == {"tiny_model"}
    assert f"crt_abi_{ABI}" in wanted
    rest = wanted - {f"crt_abi_{ABI}"} - KNOWN
    assert not {name for name in rest if not name.startswith(ARITHMETIC)}


def test_each_kernel_and_table_is_a_section_of_its_own() -> None:
    library = made("cortex-m4")
    facts, found = library.tables, sections(elf(library))
    kernels = {f".text.{func.name}" for func, _ in facts.kernels}
    parts = {
        f".text.{part.name}"
        for func, _ in facts.kernels
        for part in statements(func.body)
        if isinstance(part, Part)
    }
    code = {name for name in found if name.startswith(".text")}
    # a piece may be too short for a function of its own
    assert kernels <= code <= kernels | parts
    assert code & parts
    weights = {f".rodata.weights.{c.symbol}": c.array.nbytes for c in facts.constants}
    assert weights == {n: b for n, b in found.items() if ".weights." in n}
    io = len(facts.inputs) + len(facts.outputs)
    sizes = {
        "args": 4 * max(len(facts.args), 1),
        "constants": 4 * len(facts.constant_list),
        "operands": tables.OPERAND_BYTES * len(facts.operands),
        "rows": tables.ROWS_BYTES * len(facts.rows),
        "steps": tables.STEP_BYTES * len(facts.steps),
        "tensors": tables.TENSOR_BYTES * io,
        "model": tables.MODEL_BYTES + 4,  # with the pointer to crt's version
    }
    assert sizes == {part: found[f".rodata.tiny_{part}"] for part in sizes}
    data = sum(b for name, b in found.items() if name.startswith(".rodata"))
    flash = library.report.flash
    assert data == flash.weights + flash.tables + 4


@pytest.mark.parametrize("target", [t for t in LLVM if t != "rv32imc"])
def test_pairs_of_products_are_one_instruction(target: str) -> None:
    """SMLAD is FB2n xxxx, of Arm; where it is not printed, its meaning is two
    products."""
    code = [
        s.data() for s in elf(made(target)).iter_sections() if s.name[:5] == ".text"
    ]
    halves = [half & 0xFFF0 for data in code for half in memoryview(data).cast("H")]
    assert (0xFB20 in halves) == (target in ("cortex-m4", "cortex-m7", "cortex-m33"))


@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_constants_are_where_and_what_llvm_would_have_made(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LEAST 1: all of them are put in behind LLVM; 1 << 30: none."""
    found = []
    for least in (1, 1 << 30):
        monkeypatch.setattr(contents, "LEAST", least)
        file = elf(made("cortex-m4", kind))
        weights = [s for s in file.iter_sections() if ".rodata.weights." in s.name]
        symbols = file.get_section_by_name(".symtab").iter_symbols()
        sizes = {s.name: (s["st_value"], s["st_size"]) for s in symbols}
        found.append({
            s.name: (s.data(), s["sh_addralign"], sizes[s.name.rpartition(".")[2]])
            for s in weights if s.name[:4] != ".rel"
        })  # fmt: skip
        assert all(s["sh_offset"] % s["sh_addralign"] == 0 for s in weights)
    assert found[0] == found[1] and len(found[0]) > 3


def test_contents_of_a_file_of_more_sections_than_its_header_can_say() -> None:
    few = [f'@t{n} = constant i8 1, section ".rodata.t{n}"' for n in range(0xFF00)]
    one, place = "constant [1 x i8] zeroinitializer", contents.SECTION
    big = f'@big = {one}, section "{place}big", align 4'
    odd = f'@odd = {one}, section "{place}odd"'
    machine = machine_of(llvm_named("cortex-m4"))
    text = "\n".join(['target triple = "thumbv7em-none-eabihf"', odd, big, *few])
    emitted = machine.emit_object(binding.parse_assembly(text))
    values = np.arange(9000, dtype=np.int16)
    arrays = {"odd": np.ones(5, np.int8), "big": values, "unknown": values}
    held = bytes(contents.with_contents(emitted, arrays))
    assert held[48:50] == b"\0\0"
    start = int.from_bytes(held[32:36], "little")
    rows = np.frombuffer(held, "<u4", 0xFF00 * 10, start).reshape(-1, 10)
    (row,) = rows[rows[:, 5] == values.nbytes]
    assert held[row[4] : row[4] + row[5]] == values.tobytes() and row[4] % 4 == 0


def test_size_makes_less_code() -> None:
    """Fewer kernels, and LLVM is told."""
    model = pybuild.load(model_path("kws_int8.tflite"))

    def code(optimise: str) -> int:
        library = model.build(target="cortex-m4", emit="obj", optimise=optimise)
        found = sections(elf(library))
        return sum(size for name, size in found.items() if name.startswith(".text"))

    assert code("size") < code("balanced")


def test_the_report_says_what_the_object_is_for(tmp_path: Path) -> None:
    model = classifier("tiny").model()
    model.build(tmp_path / "t", name="tiny", target="cortex-m33", emit="obj")
    report = json.loads((tmp_path / "t/report.json").read_text())
    wanted = {
        "emit": "obj", "target": "cortex-m33", "cpu": "cortex-m33",
        "features": "+dsp,+fp-armv8d16sp",
    }  # fmt: skip
    assert {key: report[key] for key in wanted} == wanted
    report = model.build(target="cortex-m33").report.to_json()
    assert (report["emit"], report["cpu"], report["features"]) == ("c", "", "")


def test_a_tree_holds_one_form_of_the_model(tmp_path: Path) -> None:
    """What an earlier build left is not there to be linked twice."""
    model, folder = classifier("tiny").model(), tmp_path / "t"
    forms = {"c": {"tiny.c", "tiny_weights.c"}, "obj": {"tiny.o", "tiny_functions.c"}}
    common = {"tiny.h", "tiny_selftest.c"}
    for emit in ("c", "obj", "c"):
        model.build(folder, name="tiny", target="cortex-m4", emit=emit)
        held = {p.name for p in folder.iterdir() if p.name.startswith("tiny")}
        assert held == common | forms[emit]


def test_a_library_of_c_compiles_where_its_target_can() -> None:
    as_c = classifier("tiny").model().build(name="tiny", target="cortex-m4")
    have, want = as_c.compiled(), made("cortex-m4").compiled()
    heads = [str(files.pop("tiny.h")).partition("*/") for files in (have, want)]
    assert have == want and heads[0][2] == heads[1][2]
    assert "--emit obj" in heads[1][0] and "--emit" not in heads[0][0]
    with pytest.raises(errors.BuildError, match="objects are not made for"):
        classifier("tiny").model().build(name="tiny").compiled()
