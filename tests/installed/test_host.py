"""Models on this machine: both back ends equal numpy on every tensor, and the
instance behaves as documented: set, bind, borrow, run again, errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import pybuild
from pybuild.host.abi import CrtError, errors
from pybuild.host.devices import aligned
from pybuild.host.native import Net
from pybuild.host.trace import layer_seconds, recorded
from pybuild.library import Library
from pybuild.ops.interpret import interpret
from pybuild.verify.bench import bench
from tests.graphs.networks import classifier
from tests.toolchains import ROOT

BACKENDS = ["llvm", "c"]
KINDS = ["int8", "float32"]


def image(kind: str, seed: int = 0) -> np.ndarray:
    chance = np.random.default_rng(seed)
    if kind == "int8":
        return chance.integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)
    return chance.normal(0, 1, (1, 8, 8, 3)).astype(np.float32)


def build(kind: str = "int8", rounding: str = "litert", **options: object) -> Library:
    return classifier("tiny", kind).model().build(rounding=rounding, **options)


@pytest.fixture(scope="module")
def net() -> Net:
    return build().host()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rounding", ["litert", "tflm", "single", "onnx"])
@pytest.mark.parametrize("optimise", ["balanced", "speed"])
def test_every_int8_tensor_is_exact(backend: str, rounding: str, optimise: str) -> None:
    library = build("int8", rounding, optimise=optimise)
    net = library.host(backend)
    for seed in range(3):
        inputs = {"image": image("int8", seed)}
        expected = interpret(library.plan.graph, inputs)
        for name, value in recorded(net, inputs).items():
            np.testing.assert_array_equal(value, expected[name], err_msg=name)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_float_tensor_is_near(backend: str) -> None:
    library = build("float32")
    inputs = {"image": image("float32")}
    expected = interpret(library.plan.graph, inputs)
    for name, value in recorded(library.host(backend), inputs).items():
        most = 1e-5 * max(1e-6, float(np.abs(expected[name]).max()))
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=most)


def test_both_printers_give_the_same_float_bits() -> None:
    inputs = {"image": image("float32")}
    library = build("float32")
    one, two = (recorded(library.host(b), inputs) for b in BACKENDS)
    for name, value in one.items():
        np.testing.assert_array_equal(value, two[name], err_msg=name)


def test_an_intermediate_that_is_also_an_output() -> None:
    library = classifier().model("scores", "residual", "stem").build()
    net = library.host()
    expected = interpret(library.plan.graph, {"image": image("int8")})
    for _ in range(2):
        net.run(image=image("int8"))
        for name, value in net.outputs().items():
            np.testing.assert_array_equal(value, expected[name], err_msg=name)


def test_a_used_up_input_is_an_error_not_a_wrong_answer(net: Net) -> None:
    net.reset()
    with pytest.raises(CrtError) as missing:
        net.run()
    assert missing.type.__name__ == "CRT_ERR_INPUT_MISSING"
    net.run(image=image("int8"))
    with pytest.raises(CrtError) as consumed:
        net.run()
    assert consumed.type.__name__ == "CRT_ERR_INPUT_CONSUMED"


def test_a_kept_input_gives_the_same_answer_again() -> None:
    net = build(input="keep").host()
    net.run(image=image("int8"))
    first = net.get_output("scores")
    net.run()
    np.testing.assert_array_equal(net.get_output(0), first)


def test_bound_arrays_are_used_without_a_copy(net: Net) -> None:
    given, scores = image("int8", 4), np.zeros((1, 5), np.int8)
    net.bind_input("image", given)
    net.bind_output("scores", scores)
    net.run()
    first = scores.copy()
    given[:] = image("int8", 5)
    net.run()
    assert not np.array_equal(scores, first)
    other = build().host()
    other.run(image=given)
    np.testing.assert_array_equal(other.get_output(0), scores)


def test_wrong_names_shapes_and_types_name_what_is_right(net: Net) -> None:
    with pytest.raises(KeyError, match="'image'"):
        net.run(audio=image("int8"))
    with pytest.raises(KeyError, match="'scores'"):
        net.get_output("score")
    with pytest.raises(ValueError, match=r"int8\[1, 8, 8, 3\], not float32"):
        net.run(image=image("float32"))


def test_reads_of_stale_memory_would_show() -> None:
    """The arena is poisoned before the run: no result may depend on it."""
    library = build()
    net = library.host()
    results = []
    for poison in (0x00, 0x7F, 0x80, 0xFF):
        net.arena[:] = poison
        net.run(image=image("int8"))
        results.append(net.get_output("scores"))
    assert all(np.array_equal(r, results[0]) for r in results)


def test_instances_run_in_threads() -> None:
    library = build()
    nets = [library.host() for _ in range(4)]
    wanted = [
        interpret(library.plan.graph, {"image": image("int8", i)}) for i in range(4)
    ]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(50):
            nets[index].run(image=image("int8", index))
            scores = nets[index].get_output("scores")
            if not np.array_equal(scores, wanted[index]["scores"]):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_layers_are_timed_one_by_one(net: Net) -> None:
    rows = layer_seconds(net, 3, {"image": image("int8")})
    assert len(rows) == 3 and len(rows[0]) == len(net.plan.steps)
    assert all(second >= 0 for row in rows for second in row)
    assert sum(map(sum, rows)) > 0


@pytest.mark.parametrize("options", [{}, {"plan": "whole"}, {"push": ["image"]}])
def test_layers_take_together_what_a_run_takes(options: dict[str, object]) -> None:
    """Watching them is not counted. Of three tries one is enough: others work here."""
    digits = pybuild.load(ROOT / "examples/digits/digits_int8.tflite")
    library = digits.build(**options)
    ratios = []
    for _ in range(3):
        made = bench(library, runs=200)
        sum_of_layers = sum(layer.seconds for layer in made.layers)
        ratios.append(sum_of_layers / made.seconds.median)
        if 0.5 < ratios[-1] < 1.3:
            return
    raise AssertionError(ratios)


def test_every_error_code_has_an_exception() -> None:
    names = {kind.__name__ for kind in errors().values()}
    assert {"CRT_ERR_NULL", "CRT_ERR_ALIGN", "CRT_ERR_INPUT_CONSUMED"} <= names


def test_an_instance_can_be_moved_and_borrowed_from() -> None:
    net = build(input="keep").host()
    memory = [aligned(size) for size in net.region_bytes]
    net.use_memory(memory)
    with pytest.raises(CrtError, match="CRT_ERR_NO_OUTPUT"):
        net.borrow_output("scores")
    given = net.borrow_input("image")
    given[:] = image("int8")
    net.run()
    scores = net.borrow_output("scores")
    assert np.may_share_memory(given, memory[0])
    assert np.may_share_memory(scores, memory[0])
    expected = build().host()(image=image("int8"))["scores"]
    np.testing.assert_array_equal(scores, expected)


def test_a_binding_ends_with_none(net: Net) -> None:
    given, scores = image("int8", 4), np.zeros((1, 5), np.int8)
    net.bind_input("image", given)
    net.bind_output("scores", scores)
    net.run()
    assert net.borrow_input("image") is given and net.borrow_output(0) is scores
    net.bind_output("scores", None)
    net.bind_input("image", None)
    with pytest.raises(CrtError):
        net.run()
    net.run(image=given)
    assert net.borrow_output(0) is not scores
    np.testing.assert_array_equal(net.borrow_output(0), scores)


def test_misaligned_memory_is_named() -> None:
    net = build("float32", input="keep").host()
    crooked = np.zeros(8 * 8 * 3 * 4 + 1, np.uint8)[1:].view(np.float32)
    if crooked.ctypes.data % 4 == 0:
        crooked = np.zeros(8 * 8 * 3 * 4 + 2, np.uint8)[2:].view(np.float32)
    with pytest.raises(CrtError, match="'image', a multiple of") as caught:
        net.bind_input("image", crooked.reshape(1, 8, 8, 3))
    assert caught.type.__name__ == "CRT_ERR_ALIGN"


@pytest.mark.parametrize("backend", BACKENDS)
def test_state_that_is_damaged_is_refused(backend: str) -> None:
    model = ROOT / "examples" / "streams" / "gru.onnx"
    net = pybuild.load(model, state={"h": "h_next"}).build().host(backend)
    before = net.save_state()
    net.run(frame=np.ones((1, 1, 8), np.float32))
    saved = net.save_state()
    for cut in range(1, len(saved) // 4):  # half written over what was there
        torn = saved[: 4 * cut] + before[4 * cut :]
        with pytest.raises(CrtError, match="CRT_ERR_STATE: state is damaged"):
            net.restore_state(torn)
    assert net.save_state() == saved
    net.restore_state(before)
    assert net.save_state() == before != saved
