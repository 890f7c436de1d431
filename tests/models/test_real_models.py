"""What issue 2 promises of real networks: equal to the interpreters, within the RAM,
clean C. Needs the folder of models; knows no kernel."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.host.abi import CrtError
from pybuild.verify.check import check
from pybuild.verify.samples import samples
from tests.conftest import model_path
from tests.graphs.real_models import (
    ARENAS,
    BACKENDS,
    CONSUMABLE_RAM,
    FILES,
    FLOATS,
    HYBRID,
    NETWORKS,
    PUSHED_RAM,
    ROW_ARENAS,
    TFLITE,
    kind_of_reference,
    stem,
    steps_from_onnx_runtime,
    twice_rounded,
    worst_distance,
)
from tests.toolchains import SANITIZE, STRICT, links, require, require_module, run

SAMPLES = {"kws": 20, "vww": 5, "ic": 5, "ad": 20}
FLOAT_TOLERANCE = 1e-5
HYBRID_TOLERANCE = 0.03
REPORT_KEYS = {"name", "ram", "flash", "macs", "inputs", "outputs", "layers"}
PACKAGES = {"litert": "ai_edge_litert", "ort": "onnxruntime"}


@functools.cache
def built(path: Path, **options: str) -> pybuild.Library:
    return pybuild.load(path).build(**options)


def interpreted(name: str) -> Path:
    """The path of a model whose interpreter is here."""
    path = model_path(name)
    require_module(PACKAGES[kind_of_reference(path)])
    return path


# ---- the same values ----------------------------------------------------------


@pytest.mark.parametrize("network", NETWORKS)
def test_every_int8_tensor_equals_litert(network: str) -> None:
    require("gcc")
    path = interpreted(f"{network}_int8.tflite")
    library, count = built(path), SAMPLES[network]
    seen = check(path, library, BACKENDS, "litert", count, per_layer=True)
    assert seen.ok and seen.samples == count
    assert seen.tensors == len(library.plan.graph.nodes)
    for tally in seen.backends.values():
        assert (tally.mismatches, tally.unequal, tally.max_abs) == (0, 0, 0.0)
        assert tally.elements > 400 * count


@pytest.mark.parametrize("name", FLOATS)
def test_float_outputs_are_near(name: str) -> None:
    require("gcc")
    path = interpreted(name)
    for backend in BACKENDS:
        far = worst_distance(built(path), path, backend, 5)
        assert far.relative <= FLOAT_TOLERANCE, backend


def test_the_hybrid_file_is_near_both_ways() -> None:
    """With floats to its float twin; else to LiteRT, which quantises activations on the
    fly. To the other one within 0.03 of the range of its output, a probability."""
    require("gcc")
    require_module("ai_edge_litert")
    twin, file = interpreted("kws_f32.onnx"), model_path(HYBRID)
    ways = {"float": (twin, file), "litert": (file, twin)}
    for hybrid, (near, other) in ways.items():
        library = pybuild.load(interpreted(HYBRID), hybrid=hybrid).build()
        for backend in BACKENDS:
            far = worst_distance(library, near, backend, 20)
            assert far.relative <= FLOAT_TOLERANCE, backend
            far = worst_distance(library, other, backend, 20)
            assert 0 < far.absolute <= HYBRID_TOLERANCE, backend


@pytest.mark.parametrize("network", NETWORKS)
def test_qdq_outputs_pass_the_check(network: str) -> None:
    """At most one step, 99.9 % equal."""
    require("gcc")
    path = interpreted(f"{network}_qdq.onnx")
    seen = check(path, built(path), BACKENDS, "ort", 20)
    assert seen.ok
    for tally in seen.backends.values():
        assert tally.mismatches == 0
        assert tally.unequal <= 0.001 * tally.elements
        assert tally.elements >= 40


@pytest.mark.parametrize("network", NETWORKS)
def test_qdq_outputs_equal_integer_kernels(network: str) -> None:
    """ONNX Runtime runs six of ic's convolutions in float, which now and then puts
    an element to the other side of a tie: fewer samples of it."""
    require("gcc")
    path = interpreted(f"{network}_qdq.onnx")
    for backend in BACKENDS:
        count = 20 if network == "ic" else 100
        seen = steps_from_onnx_runtime(built(path), path, backend, count)
        assert seen.unequal <= 0.001 * seen.elements and seen.most <= 1
        assert seen.elements >= 200


def test_tflm_rounds_twice() -> None:
    """Equal to TensorFlow Lite Micro's arithmetic, where LiteRT's is different."""
    path = model_path("ad_int8.tflite")
    library = built(path, rounding="tflm")
    (name,) = library.plan.graph.inputs
    net, single = library.host(), built(path).host()
    different = 0
    for given in samples(library.plan.graph, 20):
        net.run(**given.inputs)
        single.run(**given.inputs)
        want = twice_rounded(path, given.inputs[name])
        np.testing.assert_array_equal(net.get_output(0), want)
        different += int((single.get_output(0) != want).sum())
    assert different > 100


# ---- memory -------------------------------------------------------------------


@pytest.mark.parametrize("network", NETWORKS)
def test_arenas_reach_their_bound(network: str) -> None:
    ram = built(model_path(f"{network}_int8.tflite"), plan="whole").report.ram
    assert ram.arena == ram.lower_bound == ARENAS[network]
    ram = built(model_path(f"{network}_int8.tflite")).report.ram
    assert ram.lower_bound <= ram.arena == ROW_ARENAS[network]


@pytest.mark.parametrize(
    "network",
    ["vww", *(pytest.param(name, marks=pytest.mark.sweep) for name in ("kws", "ic"))],
)
def test_inputs_that_may_be_written_over_make_room(network: str) -> None:
    """The same bits in the bytes that are promised, whatever was there before."""
    path = model_path(f"{network}_int8.tflite")
    library = built(path, input="consumable")
    ram = library.report.ram
    assert ram.arena + ram.instance <= CONSUMABLE_RAM[network]
    given = next(iter(samples(library.plan.graph, 1))).inputs
    net, known = library.host(), built(path).host()
    net.arena[:] = 0xA5
    for each in (net, known):
        each.run(**given)
    np.testing.assert_array_equal(net.get_output(0), known.get_output(0))
    with pytest.raises(CrtError) as caught:
        net.run()
    assert caught.type.__name__ == "CRT_ERR_INPUT_CONSUMED"


@pytest.mark.sweep
@pytest.mark.parametrize(("network", "most"), [("vww", 29_500), ("ic", 13_800)])
def test_they_make_room_for_scratch_too(network: str, most: int) -> None:
    path = model_path(f"{network}_int8.tflite")
    ram = built(path, input="consumable", target="cortex-m4").report.ram
    assert ram.arena + ram.instance <= most


@pytest.mark.parametrize(
    "target", ["generic", pytest.param("cortex-m4", marks=pytest.mark.sweep)]
)
@pytest.mark.parametrize("network", PUSHED_RAM)
def test_pushed_inputs_reach_what_is_promised(network: str, target: str) -> None:
    model = pybuild.load(model_path(f"{network}_int8.tflite"))
    ram = model.build(push=model.graph.inputs, target=target).report.ram
    assert ram.arena + ram.instance <= PUSHED_RAM[network]
    assert ram.arena >= ram.lower_bound


@pytest.mark.parametrize("name", FILES)
def test_instances_are_small_and_reports_complete(name: str) -> None:
    report = built(model_path(name)).report
    bindable = len(report.inputs) + len(report.outputs) + 1
    assert report.ram.instance <= 64 + 4 * bindable
    assert report.ram.arena >= report.ram.lower_bound > 0
    plain = json.loads(json.dumps(report.to_json()))
    assert set(plain) >= REPORT_KEYS
    assert set(plain["ram"]) >= {"arena", "instance", "lower_bound"}
    assert set(plain["flash"]) >= {"weights", "tables"}
    assert plain["macs"] == sum(layer["macs"] for layer in plain["layers"]) > 0
    for layer in plain["layers"]:
        assert set(layer) >= {"name", "op", "macs", "out_bytes"}


@pytest.mark.parametrize("name", TFLITE)
def test_a_second_run_is_never_a_wrong_answer(name: str) -> None:
    """Used up, and said so; or an input that is still there, and the same answer."""
    path = model_path(name)
    plan = built(path).plan
    given = next(iter(samples(plan.graph, 1))).inputs
    net = built(path).host()
    net.run(**given)
    first = net.get_output(0)
    if plan.consumed:
        with pytest.raises(CrtError) as caught:
            net.run()
        assert caught.type.__name__ == "CRT_ERR_INPUT_CONSUMED"
    else:
        net.run()
        np.testing.assert_array_equal(net.get_output(0), first)
    kept = built(path, input="keep").host()
    kept.run(**given)
    kept.run()
    np.testing.assert_array_equal(kept.get_output(0), first)


# ---- the generated C ----------------------------------------------------------


@functools.cache
def tree(path: Path, folder: Path) -> Path:
    """The files that `crt build` leaves, self-test and example included."""
    pybuild.load(path).build(folder / path.name)
    return folder / path.name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trees")


def strict(root: Path) -> list[str]:
    includes = [f"-I{root}", f"-I{root / 'crt' / 'include'}"]
    return [*STRICT, "-ffp-contract=off", "-DCRT_WITH_SELFTEST", *includes]


@pytest.mark.parametrize("name", FILES)
def test_clang_finds_generated_c_clean(name: str, folder: Path) -> None:
    """gcc is asked with as many warnings where its sanitizers are; of crt, which is the
    same in each tree, clang is asked in tests/crt."""
    clang = require("clang")
    root = tree(model_path(name), folder)
    sources = [p for p in sorted(root.rglob("*.c")) if root / "crt" not in p.parents]
    assert len(sources) >= 4
    run([clang, *strict(root), "-O0", "-fsyntax-only", *sources])


@pytest.mark.parametrize("network", NETWORKS)
def test_struct_is_no_larger_than_reported(network: str, folder: Path) -> None:
    """The header's own check, with a compiler whose pointers have 32 bits."""
    gcc = require("arm-none-eabi-gcc")
    path = model_path(f"{network}_int8.tflite")
    root = tree(path, folder)
    name, bytes_ = stem(path.name), built(path).report.ram.instance
    source = root.parent / f"{name}_size.c"
    source.write_text(
        f'#include "{name}.h"\n'
        f"char small[sizeof(struct {name}) <= {bytes_} ? 1 : -1];\n"
    )
    run([gcc, "-mcpu=cortex-m4", *strict(root), "-fsyntax-only", source])


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_self_test_is_clean_under_sanitizers(
    name: str, folder: Path, tmp_path: Path
) -> None:
    gcc = require("gcc")
    assert links(gcc, SANITIZE["gcc"], tmp_path), "gcc has no sanitizer run time"
    root = tree(model_path(name), folder)
    program = tmp_path / "program"
    sources = sorted(root.rglob("*.c"))
    run([gcc, *strict(root), *SANITIZE["gcc"], "-O0", *sources, "-o", program])
    assert "self-test: no error" in run([program])


BUILD = """
import sys
import pybuild
pybuild.load(sys.argv[1]).build(sys.argv[2])
"""


@pytest.mark.parametrize("name", ["kws_int8.tflite", "ad_qdq.onnx"])
def test_same_bytes_from_another_place(name: str, tmp_path: Path) -> None:
    """Another path to the model and the tree, locale, hash seed and process."""
    path = model_path(name)
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "elsewhere" / name
    copy.write_bytes(path.read_bytes())
    for seed, source, locale in (("1", path, "C"), ("77", copy, "C.UTF-8")):
        _build_apart(source, tmp_path / seed, PYTHONHASHSEED=seed, LC_ALL=locale)
    files = sorted(p for p in (tmp_path / "1").rglob("*") if p.is_file())
    assert len(files) > 12
    for file in files:
        other = tmp_path / "77" / file.relative_to(tmp_path / "1")
        assert file.read_bytes() == other.read_bytes(), file.name


def _build_apart(model: Path, out: Path, **settings: str) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), **settings}
    command = [sys.executable, "-c", BUILD, str(model), str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
