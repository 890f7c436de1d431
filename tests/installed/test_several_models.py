"""Several models in one image: what is equal is there once, memory as the user says,
and every model answers as it does alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, LimitError
from pybuild.host.abi import CrtError
from pybuild.host.native import Net
from pybuild.image import Image
from pybuild.ir.graph import Quant, Tensor
from pybuild.model import Model
from tests.emit.test_generated_c import CLEAN, SANITIZE, shell
from tests.graphs.networks import Network, classifier
from tests.toolchains import require

BACKENDS = ["llvm", "c"]
IMAGE = np.random.default_rng(3).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)
SCALE = float(np.float32(1 / 256))


def head(kind: str = "int8", zero: int = -128) -> Model:
    """Takes the five scores of the classifier."""
    net = Network("head", (1, 5), kind, 9)
    if kind == "int8":
        quant = Quant((SCALE,), (zero,))
        net.tensors["image"] = Tensor("image", (1, 5), DType.INT8, quant)
    net.dense("out", 5)
    return net.model()


def models() -> dict[str, Model]:
    """Two that differ in their last layer only, and one of another kind."""
    first, second = (classifier("net", seed=1) for _ in range(2))
    second.constants["logits/b"] = second.constants["logits/b"] + np.int32(7)
    outputs = ("scores", "stem")
    made = {"one": first.model(*outputs), "two": second.model(*outputs)}
    return {**made, "head": head()}


def image(out: Path | None = None, **options: object) -> Image:
    return pybuild.build_image(models(), out, name="trio", **options)


WIRED = {"exclusive": [("one", "head")], "connect": ["one.scores=head.image"]}


def answers(net: Net, **inputs: Array) -> list[Array]:
    net.run(**inputs)
    return list(net.outputs().values())


def constants(net: Net) -> list[int]:
    """Where the constants of all steps are."""
    found = []
    for index in range(net._model.step_count):
        step = net._model.steps[index]
        for pointer in step.constants[0 : step.constant_count]:
            found.append(int(net._ffi.cast("uintptr_t", pointer)))
    return found


def kernels(net: Net) -> list[int]:
    count = net._model.step_count
    cast = net._ffi.cast
    return [int(cast("uintptr_t", net._model.steps[i].kernel)) for i in range(count)]


# ---- sharing ------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("names", ["full", "ids"])
def test_every_model_answers_as_it_does_alone(backend: str, names: str) -> None:
    nets = image(names=names).host(backend)
    given = {"one": IMAGE, "two": IMAGE, "head": IMAGE[0, :1, :5, 0]}
    for name, model in models().items():
        alone = answers(model.build().host(backend), image=given[name])
        for have, want in zip(
            answers(nets[name], image=given[name]), alone, strict=True
        ):
            np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_constants_and_kernels_are_one(backend: str) -> None:
    nets = image().host(backend)
    one, two = constants(nets["one"]), constants(nets["two"])
    unequal = [i for i, (a, b) in enumerate(zip(one, two, strict=True)) if a != b]
    assert len(unequal) == 1 and len(set(one)) > 8  # logits/b
    assert kernels(nets["one"]) == kernels(nets["two"])
    assert set(kernels(nets["head"])) <= set(kernels(nets["one"]))


def test_the_report_says_what_is_shared() -> None:
    made = image(exclusive=[("one", "two")])
    report = made.report
    alone = {name: model.build().report for name, model in models().items()}
    weights = {name: r.flash.weights for name, r in alone.items()}
    shared = [row for row in report.shared if row.kind == "constant"]
    assert {row.models for row in shared} == {("one", "two")}
    assert report.flash.saved == sum(row.bytes for row in shared)
    assert report.flash.weights == sum(weights.values()) - report.flash.saved
    assert report.flash.saved >= weights["one"] - 5 * 4
    assert [m.name for m in report.models] == ["one", "two", "head"]
    assert report.models[0].flash.weights == weights["one"]
    plain = report.to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["exclusive"] == [["one", "two"]]
    both = ("one", "two", "head")
    kernels = {row.models for row in report.shared if row.kind == "kernel"}
    assert kernels == {("one", "two"), both}


def test_counts_and_names_per_model() -> None:
    made = image(params=["stem/w"])
    one, other = made["one"], made["head"]
    assert (one.get_num_inputs(), one.get_num_outputs()) == (1, 2)
    assert one.get_num_params() == len(one.plan.slots) > 0
    assert other.get_num_params() == 0
    assert one.get_output_names() == ("scores", "stem")
    assert list(made) == ["one", "two", "head"] and len(made) == 3
    with pytest.raises(KeyError, match="'three' is not known; there is 'one', 'two'"):
        made["three"]
    nets = made.host()
    want = models()["one"].build().host()
    np.testing.assert_array_equal(
        answers(nets["one"], image=IMAGE)[1], answers(want, image=IMAGE)[1]
    )


# ---- one memory -----------------------------------------------------------------


def test_models_that_never_run_together_lie_in_one_place() -> None:
    apart, turns = image(), image(exclusive=[("one", "two", "head")])
    arenas = {n: -(-m.plan.arena_bytes // 16) * 16 for n, m in apart.members.items()}
    assert apart.report.ram.arena == sum(arenas.values())
    assert turns.report.ram.arena == max(arenas.values())
    assert turns.report.ram.separate == apart.report.ram.arena
    two = image(exclusive=[("two", "head")]).report.ram
    assert two.arena == arenas["one"] + max(arenas["two"], arenas["head"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_turns_are_checked(backend: str) -> None:
    nets = image(exclusive=[("one", "two")]).host(backend)
    first = answers(nets["one"], image=IMAGE)
    nets["one"].set_input("image", IMAGE)
    nets["two"].set_input("image", IMAGE)  # takes the memory over
    with pytest.raises(CrtError, match="CRT_ERR_INPUT_MISSING"):
        nets["one"].run()
    nets["two"].set_input("image", IMAGE)
    nets["two"].run_stage(0)
    with pytest.raises(CrtError, match="CRT_ERR_BUSY"):
        nets["one"].set_input("image", IMAGE)
    for stage in range(1, nets["two"].stages):
        nets["two"].run_stage(stage)
    again = answers(nets["one"], image=IMAGE)
    for have, want in zip(again, first, strict=True):
        np.testing.assert_array_equal(have, want)


def test_a_ram_limit_is_of_the_whole_image() -> None:
    need = image().report.ram.arena
    assert image(ram_limit=need).report.ram.arena == need
    with pytest.raises(LimitError, match=f"has {need} bytes, .*'one' 232"):
        image(ram_limit=need - 1)
    assert image(ram_limit=need - 1, exclusive=[("one", "two")])


# ---- connections ----------------------------------------------------------------


def chained(kind: str, **options: object) -> Image:
    given = {"body": classifier("body", kind).model(), "head": head(kind)}
    return pybuild.build_image(given, **options)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["int8", "float32"])
@pytest.mark.parametrize("exclusive", [(), [("body", "head")]])
def test_an_output_is_the_next_input(
    backend: str, kind: str, exclusive: object
) -> None:
    made = chained(kind, exclusive=exclusive, connect=["body.scores=head.image"])
    nets = made.host(backend)
    given = IMAGE if kind == "int8" else IMAGE.astype(np.float32)
    apart = {n: m.build().host(backend) for n, m in made_of(kind).items()}
    for _ in range(2):
        nets["body"].run(image=given)
        place = nets["body"].borrow_output(0).ctypes.data
        nets["head"].run()
        (scores,) = answers(apart["body"], image=given)
        (want,) = answers(apart["head"], image=scores)
        np.testing.assert_array_equal(nets["head"].get_output(0), want)
        given = given[:, ::-1].copy()
    assert nets["head"].borrow_input(0).ctypes.data == place
    assert len(np.unique(want)) > 1


def made_of(kind: str) -> dict[str, Model]:
    return {"body": classifier("body", kind).model(), "head": head(kind)}


def test_a_connection_costs_one_buffer() -> None:
    plain, wired = chained("int8"), chained("int8", connect=["body.scores=head.image"])
    assert wired["head"].plan.arena_bytes == plain["head"].plan.arena_bytes - 8
    assert wired.tables.pieces[0].together.buffers == (wired.report.ram.arena - 16,)
    assert [c.bytes for c in wired.report.connections] == [5]
    assert wired.report.connections[0].ends == "body.scores=head.image"
    twice = {**made_of("int8"), "more": head()}
    both = pybuild.build_image(
        twice, connect=["body.scores=head.image", "body.scores=more.image"]
    )
    assert len(both.tables.pieces[0].together.buffers) == 1


def test_names_of_tensors_may_hold_dots_and_equals() -> None:
    body = classifier("body").model()
    odd = "a.b=c.d:0"
    graph = replace(
        body.graph,
        tensors={
            **body.graph.tensors,
            odd: replace(body.graph.tensors["scores"], name=odd),
        },
        nodes=(*body.graph.nodes[:-1], replace(body.graph.nodes[-1], outputs=(odd,))),
        outputs=(odd,),
    )
    given = {"a": replace(body, graph=graph, _lowered={}), "head": head()}
    made = pybuild.build_image(given, connect=[f"a.{odd}=head.image"])
    assert str(made.tables.wires[0]) == f"a.{odd}=head.image"


@pytest.mark.parametrize(
    ("connect", "wrong"),
    [
        (["body.scores"], "'body.scores' is not MODEL.OUTPUT=MODEL.INPUT"),
        (["b.scores=head.image"], "there is no model 'b'"),
        (["body.score=head.image"], "'body' has no output 'score'"),
        (["body.scores=head.x"], "'head' has no input 'x'"),
        (["body.scores=body.image"], "connects a model with itself"),
        (["body.scores=head.image"] * 2, "'head.image' has two sources"),
    ],
)
def test_what_cannot_be_connected(connect: list[str], wrong: str) -> None:
    with pytest.raises(BuildError) as error:
        chained("int8", connect=connect)
    assert wrong in str(error.value)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (head("float32"), "input 'head.image' is float32[1, 5]"),
        (head(zero=-127), "is int8[1, 5] with scale 0.00390625, zero point -127"),
        (Network("head", (1, 5), "int8", 1), "with scale 0.0500000007, zero point 3"),
        (Network("head", (1, 6), "float32", 1), "float32[1, 6]"),
    ],
)
def test_both_ends_must_be_equal(other: Model | Network, said: str) -> None:
    if isinstance(other, Network):
        other.dense("out", 2)
        other = other.model()
    given = {"body": classifier("body").model(), "head": other}
    with pytest.raises(BuildError) as error:
        pybuild.build_image(given, connect=["body.scores=head.image"])
    text = str(error.value)
    assert said in text and "output 'body.scores' is int8[1, 5] with scale" in text


# ---- wrong names ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"exclusive": [("one", "three")]}, "there is no model 'three'"),
        ({"exclusive": [("one", "two"), ("two", "head")]}, "'two' is named twice"),
        ({"exclusive": [("one",)]}, "'one' is alone in its group"),
        ({"lazy": ["stems"]}, "--lazy: no model has a 'stems'"),
        ({"params": ["stem/v"]}, "--params: no model has a 'stem/v'"),
        ({"layout": {"audio": "nhwc"}}, "--layout: no model has a 'audio'"),
    ],
)
def test_unknown_names(options: dict[str, object], wrong: str) -> None:
    with pytest.raises(BuildError) as error:
        image(**options)
    assert wrong in str(error.value)


def test_names_that_clash() -> None:
    one = classifier("one").model()
    with pytest.raises(BuildError, match="another model is named 'one' too"):
        pybuild.build_image([one, one])
    with pytest.raises(BuildError, match="'one' is a model's name too"):
        pybuild.build_image({"one": one, "two": head()}, name="one")
    net = classifier("net")
    graph = net.model().graph
    odd = "b_run"
    tensors = {**graph.tensors, odd: replace(graph.tensors["scores"], name=odd)}
    nodes = (*graph.nodes[:-1], replace(graph.nodes[-1], outputs=(odd,)))
    graph = replace(graph, tensors=tensors, nodes=nodes, outputs=(odd,))
    given = {"a": replace(one, graph=graph, _lowered={}), "a_b": head()}
    with pytest.raises(BuildError, match="models 'a' and 'a_b' both define a_b_run"):
        pybuild.build_image(given)


# ---- the tree ---------------------------------------------------------------------


WAYS: dict[str, dict[str, object]] = {
    "apart": {}, "wired": WIRED, "ids": {**WIRED, "names": "ids"},
    "parameters": {"params": "replaceable"},
    "layer": {"compress": "lz4-layer"}, "lz4": {"compress": "lz4"},
}  # fmt: skip
# gcc sanitizes each; clang finds no more in the same words of one of them
BY_COMPILERS = [pytest.param("gcc", way, id=f"{way}-gcc") for way in WAYS]
BY_COMPILERS += [
    pytest.param(
        "clang", way, id=f"{way}-clang",
        marks=[pytest.mark.sweep] if way != "wired" else [],
    )
    for way in WAYS
]  # fmt: skip


@pytest.mark.parametrize(("compiler", "way"), BY_COMPILERS)
def test_clean_and_sanitized(tmp_path: Path, compiler: str, way: str) -> None:
    require(compiler)
    image(tmp_path / "t", **WAYS[way])
    sources = sorted((tmp_path / "t").rglob("*.c"))
    include = [f"-I{tmp_path / 't'}", f"-I{tmp_path / 't/crt/include'}"]
    flags = [*CLEAN, *SANITIZE[compiler], "-O1", *include]
    shell(compiler, *flags, *sources, "-o", tmp_path / "program")
    said = shell(tmp_path / "program").splitlines()
    assert said == [f"{n}: self-test: no error" for n in ("one", "two", "head")]


@pytest.mark.parametrize("build", ["make", "cmake", "meson"])
def test_build_files(tmp_path: Path, build: str) -> None:
    require(build)
    folder = tmp_path / "t"
    image(folder)
    if build == "make":
        out = shell("make", "-s", "run", cwd=folder)
    elif build == "cmake":
        shell("cmake", "-S", folder, "-B", tmp_path / "b")
        shell("cmake", "--build", tmp_path / "b")
        out = shell(tmp_path / "b" / "trio_example")
    else:
        meson = [require("meson")]
        shell(*meson, "setup", tmp_path / "b", folder)
        shell(*meson, "compile", "-C", tmp_path / "b")
        out = shell(tmp_path / "b" / "trio_example")
    assert out.count("self-test: no error") == 3


BUILD = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.installed.test_several_models import WIRED, image
image(Path(sys.argv[2]), names="ids", **WIRED)
"""


def test_same_bytes_from_another_path_and_hash_seed(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    trees = []
    for place, seed in (("a", "1"), ("b/c", "77")):
        folder = tmp_path / place / "out"
        command = [sys.executable, "-c", BUILD, str(root), str(folder)]
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        files = sorted(p for p in folder.rglob("*") if p.is_file())
        trees.append({str(p.relative_to(folder)): p.read_bytes() for p in files})
    assert trees[0] == trees[1] and len(trees[0]) > 25
    assert not [n for n, data in trees[0].items() if str(tmp_path).encode() in data]
