"""Measures what docs/benchmarks.md says and writes it: ./dev bench [-o FILE]. What
README says of it is written with the page. --only NAME measures the tables of one
module, such as any_layer, and leaves all else on the page as it is.

Needs the models of $CRT_MODELS or ../shared/models and both interpreters. Every
number is of this run; knows of pybuild what a user knows.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from pybuild.boards.simulators.qemu import find_qemu
from pybuild.targets.board import load_board
from pybuild.targets.toolchain import find_toolchain
from pybuild.verify.check import CheckResult, check
from pybuild.verify.samples import samples
from tests.bench import (
    board_costs,
    camera_costs,
    costs,
    example_costs,
    flash_costs,
    headline,
    keyword_costs,
    large_graphs,
    layer_costs,
    quantising,
    remote_costs,
    sharing,
    transform_costs,
)
from tests.bench.costs import Row, Table, built, model, output
from tests.conftest import ROOT, models_folder
from tests.fieldnets import field_costs
from tests.frontends.onnx import table as onnx_table
from tests.graphs.real_models import (
    BACKENDS,
    FILES,
    FLOATS,
    HYBRID,
    NETWORKS,
    kind_of_reference,
    steps_from_onnx_runtime,
    twice_rounded,
    worst_distance,
)
from tests.perf import any_layer, any_operator

DIGITS = ROOT / "examples" / "digits"
SAMPLES = 20


# ---- what measured ------------------------------------------------------------


def machine() -> Table:
    rows = [
        ("commit", _commit()),
        ("board", "host"),
        ("processor", _processor()),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("Python", platform.python_version()),
    ]
    packages = ("numpy", "llvmlite", "onnx", "onnxruntime", "ai-edge-litert")
    rows += [(name, importlib.metadata.version(name)) for name in packages]
    rows.append(("LLVM", _llvm()))
    for tool in ("gcc", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"):
        found = shutil.which(tool)
        version = output(tool, "-dumpfullversion") if found else "absent"
        rows.append((tool, version))
    zig = find_toolchain("zig", "arm")
    qemu = find_qemu(load_board("mps2-an386"))
    rows.append(("zig", zig.version if zig else "absent"))
    rows.append(("QEMU", qemu.name.removeprefix("QEMU ") if qemu else "absent"))
    return Table("Measured with", "One machine, one run.", ("", "version"), tuple(rows))


def _commit() -> str:
    commit = output("git", "-C", ROOT, "rev-parse", "--short", "HEAD")
    folders = ("pybuild", "crt")
    changed = output("git", "-C", ROOT, "status", "--short", "-uno", "--", *folders)
    return f"{commit} and changes on top" if changed else commit


def _processor() -> str:
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else platform.processor()


def _llvm() -> str:
    from llvmlite.binding import llvm_version_info

    return ".".join(map(str, llvm_version_info))


# ---- equal values -------------------------------------------------------------


def integers() -> Table:
    rows = []
    for network in NETWORKS:
        path = model(f"{network}_int8.tflite")
        seen = check(path, built(path), BACKENDS, "litert", SAMPLES, per_layer=True)
        rows += _tallies(network, seen)
    says = (
        f"Every tensor of the plan that ships, {SAMPLES} seeded samples, against "
        "LiteRT's reference kernels: `crt check X_int8.tflite --ref litert "
        "--per-layer`."
    )
    columns = ("model", "back end", "tensors", "elements", "mismatches")
    return Table("int8 against LiteRT", says, columns, tuple(rows))


def _tallies(network: str, seen: CheckResult) -> Iterator[Row]:
    for backend, tally in seen.backends.items():
        yield network, backend, seen.tensors, tally.elements, tally.mismatches


def rounds_twice() -> Table:
    path = model("ad_int8.tflite")
    library = built(path, rounding="tflm")
    (name,) = library.plan.graph.inputs
    rows = []
    for backend in BACKENDS:
        net, wrong, elements = library.host(backend), 0, 0
        for given in samples(library.plan.graph, SAMPLES):
            net.run(**given.inputs)
            want = twice_rounded(path, given.inputs[name])
            wrong += int((net.get_output(0) != want).sum())
            elements += want.size
        net.close()
        rows.append(("ad", backend, elements, wrong))
    says = (
        f"`--rounding tflm`, {SAMPLES} samples, against a numpy model of TensorFlow "
        "Lite Micro's dense layer that shares no code with pybuild."
    )
    columns = ("model", "back end", "elements", "mismatches")
    return Table("Rounding twice", says, columns, tuple(rows))


def floats() -> Table:
    pairs = [(name, name, 1e-5) for name in FLOATS]
    pairs += [(HYBRID, "kws_f32.onnx", 1e-5), (HYBRID, HYBRID, 0.03)]
    rows = []
    for name, other, limit in pairs:
        library = built(model(name))
        for backend in BACKENDS:
            far = worst_distance(library, model(other), backend, SAMPLES)
            ref = {"litert": "LiteRT", "ort": "ONNX Runtime"}
            known = ref[kind_of_reference(model(other))]
            of = far.relative if limit < 0.01 else far.absolute
            rows.append(
                (name, f"{known}, {other}", backend, far.absolute, far.relative, limit,
                 of <= limit)
            )  # fmt: skip
    says = (
        f"Greatest difference of an output over {SAMPLES} samples; relative to the "
        "range that the output had in them. kws_f32.tflite is a hybrid file: int8 "
        "weights, which are dequantised at build, and float activations, which LiteRT "
        "quantises on the fly: there the absolute difference, of a probability, counts."
    )
    columns = ("model", "against", "back end", "absolute", "relative", "limit", "held")
    return Table("float32", says, columns, tuple(rows))


def qdq() -> Table:
    rows = []
    for network in NETWORKS:
        path = model(f"{network}_qdq.onnx")
        for softmax in ("float", "integer"):
            for backend in BACKENDS:
                seen = steps_from_onnx_runtime(
                    built(path), path, backend, 5 * SAMPLES, softmax == "integer"
                )
                held = seen.unequal <= 0.001 * seen.elements and seen.most <= 1
                equal = f"{1 - seen.unequal / seen.elements:.4%}"
                counts = (seen.elements, seen.unequal, equal, seen.most)
                rows.append((network, softmax, backend, *counts, held))
    says = (
        f"Outputs of {5 * SAMPLES} samples. Promised: at most one step, 99.9 % equal. "
        "By default ONNX Runtime uses an integer softmax that is steps away from the "
        "result of the ONNX standard; with its float softmax and all else as by "
        "default, only ic differs: there it computes convolutions in float, and where "
        "one of them falls to the other side of a tie, all later layers differ a "
        "little. ad has no softmax."
    )
    columns = (
        "model", "their softmax", "back end", "elements", "unequal", "equal",
        "most steps", "held",
    )  # fmt: skip
    return Table("QDQ against ONNX Runtime", says, columns, tuple(rows))


def qdq_checked() -> Table:
    rows = []
    for network in NETWORKS:
        path = model(f"{network}_qdq.onnx")
        for what, inside in (("outputs", False), ("all tensors", True)):
            seen = check(path, built(path), BACKENDS, "ort", SAMPLES, per_layer=inside)
            for backend, tally in seen.backends.items():
                equal = f"{1 - tally.unequal / tally.elements:.4%}"
                rows.append(
                    (network, what, backend, tally.elements, tally.unequal, equal,
                     tally.mismatches, tally.good)
                )  # fmt: skip
    says = (
        f"`crt check X_qdq.onnx --ref ort`, {SAMPLES} samples, without and with "
        "`--per-layer`. To see every tensor, ONNX Runtime must give them as outputs, "
        "and then runs more convolutions in float than it does by default. `beyond`: "
        "outputs more than a step away."
    )
    columns = (
        "model", "compared", "back end", "elements", "unequal", "equal", "beyond",
        "held",
    )  # fmt: skip
    return Table("QDQ, by `crt check`", says, columns, tuple(rows))


def digits() -> Table:
    """The committed example, whose accuracy a user sees in the demo."""
    test = np.load(DIGITS / "digits_test.npz")
    rows = []
    for name in ("digits_int8.tflite", "digits_int8.onnx", "digits_f32.onnx"):
        library = built(DIGITS / name)
        (image,) = library.report.inputs
        real = test["images"].astype(np.float32) / 16
        if image.dtype == "int8":
            steps = np.rint(real / np.float32(image.scale)) + image.zero_point
            real = np.clip(steps, -128, 127).astype(np.int8)
        for backend in BACKENDS:
            net, right = library.host(backend), 0
            for value, label in zip(real, test["labels"], strict=True):
                net.run(image=value.reshape(image.shape))
                right += int(net.get_output("scores").argmax() == label)
            net.close()
            rows.append((name, backend, right, len(real), f"{right / len(real):.1%}"))
    columns = ("model", "back end", "right", "of", "accuracy")
    says = "Held-out pictures of `examples/digits` through both back ends."
    return Table("Digits", says, columns, tuple(rows))


Measure = Callable[[], Table]
TABLES: tuple[Measure, ...] = (
    machine, integers, rounds_twice, floats, qdq, qdq_checked, costs.memory,
    flash_costs.flash,
    costs.by_rows, costs.text,
    board_costs.on_boards, board_costs.asked_of_boards,
    board_costs.by_rows_on_boards, board_costs.beside_silicon,
    board_costs.fastest_on_boards, board_costs.smallest_on_boards,
    board_costs.floats_on_boards,
    layer_costs.single_layers, layer_costs.on_vectors,
    layer_costs.without_products,
    any_layer.any_layer, any_layer.above_ceilings, any_layer.furthest,
    any_layer.estimates, any_operator.any_operator,
    field_costs.instructions, field_costs.equal, field_costs.rows_on_every_core,
    field_costs.person_ram, field_costs.seconds,
    costs.waiting, costs.planner, costs.speed,
    sharing.compression, sharing.shared, sharing.overhead,
    remote_costs.remote, remote_costs.bytes_of_an_inference, remote_costs.faults,
    example_costs.examples, keyword_costs.heard, keyword_costs.costs,
    keyword_costs.over_time,
    camera_costs.seen, camera_costs.costs, transform_costs.transforms,
    digits, quantising.quantised, quantising.real_ones,
    large_graphs.measured, large_graphs.growth, onnx_table.measured,
)  # fmt: skip
OPENING = """# Benchmarks

Written by `./dev bench`, which measures every number anew; do not edit. All figures
are of one and the same default build, `crt build M -o DIR`, unless a line says
otherwise. `tests/models/test_real_models.py` holds the promises of these tables.
"""


def of_module(name: str) -> list[Measure]:
    """The tables of tests/.../NAME.py, or the one that a function NAME measures."""
    return [
        one
        for one in TABLES
        if name in (one.__module__.rpartition(".")[2], one.__name__)
    ]


def with_sections(page: str, made: Sequence[Table]) -> str:
    """The page with these sections in the place of those of the same titles; new ones
    behind the one before them, else at the end."""
    head, *found = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    titles = [part.partition("\n")[0].removeprefix("## ") for part in found]
    at = len(found)
    for table in made:
        text = table.markdown() + "\n"
        if table.title in titles:
            at = titles.index(table.title)
            found[at] = text
        else:
            titles.insert(at, table.title)
            found.insert(at, text)
        at += 1
    parts = [part.rstrip() for part in (head, *found)]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", default=ROOT / "docs" / "benchmarks.md")
    parser.add_argument("--only", metavar="MODULE|FUNCTION")
    asked = parser.parse_args()
    out = Path(asked.out)
    wanted = of_module(asked.only) if asked.only else list(TABLES)
    if not wanted:
        parser.error(f"--only {asked.only}: no table is measured by that")
    absent = [name for name in FILES if not model(name).is_file()]
    if absent and not asked.only:
        print(f"{models_folder()} lacks {', '.join(absent)}", file=sys.stderr)
        return 2
    tables = []
    for measure in wanted:
        tables.append(measure())
        print(tables[-1].markdown(), flush=True)
    out.write_text(with_sections(out.read_text() if asked.only else OPENING, tables))
    if not asked.only and out.samefile(headline.PAGE):
        headline.write()
    print(f"wrote {out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
