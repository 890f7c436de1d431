"""What is kept from run to run: N single steps give the bits of one run of N steps, on
every plan; reset forgets, what was saved goes on; and what does not go with state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.host.abi import CrtError
from pybuild.host.trace import recorded
from pybuild.image import build_image
from pybuild.ir.graph import Graph, Node, State, Tensor
from pybuild.model import Model
from pybuild.ops.interpret import interpret, next_state
from pybuild.verify.check import check
from tests.emit.test_generated_c import sanitized
from tests.frontends.onnx.models import model
from tests.toolchains import ROOT

GRU = ROOT / "examples" / "streams" / "gru.onnx"
STEPS, WIDTH, HIDDEN = 5, 3, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recurrent(kind: str, steps: int, folder: Path) -> Path:
    """x and the state in, every output and the state out."""
    rng = np.random.default_rng(3)
    gates = GATES[kind]
    names = ["h", "c"] if kind == "LSTM" else ["h"]
    weights = {
        "w": rng.normal(0, 1, (1, gates * HIDDEN, WIDTH)).astype(np.float32),
        "r": rng.normal(0, 1, (1, gates * HIDDEN, HIDDEN)).astype(np.float32),
    }
    reads = ["x", "w", "r", "", "", *names]
    makes = ["y", *(f"{n}_next" for n in names)]
    inputs = {"x": np.zeros((steps, 1, WIDTH), np.float32)}
    inputs |= {n: np.zeros((1, 1, HIDDEN), np.float32) for n in names}
    node = (kind, reads, makes, {"hidden_size": HIDDEN})
    path = folder / f"{kind.lower()}_{steps}.onnx"
    path.write_bytes(model([node], inputs, makes, weights))
    return path


@pytest.mark.parametrize("kind", GATES)
def test_single_steps_are_one_run_of_all(kind: str, tmp_path: Path) -> None:
    names = ["h", "c"] if kind == "LSTM" else ["h"]
    pairs = {n: f"{n}_next" for n in names}
    whole = pybuild.load(recurrent(kind, STEPS, tmp_path)).build().host("llvm")
    x = np.random.default_rng(4).normal(0, 2, (STEPS, 1, WIDTH)).astype(np.float32)
    zero = np.zeros((1, 1, HIDDEN), np.float32)
    want = whole(x=x, **dict.fromkeys(names, zero))
    single = pybuild.load(recurrent(kind, 1, tmp_path), state=pairs)
    assert single.graph.inputs == ("x",) and single.graph.outputs == ("y",)
    net = single.build(plan="rows").host("c")
    for again in range(2):
        for step in range(STEPS):
            np.testing.assert_array_equal(
                net(x=x[step : step + 1])["y"][0], want["y"][step]
            )
        for name in names:
            np.testing.assert_array_equal(net.kept()[name], want[f"{name}_next"])
        if not again:
            net.reset()
            assert not any(value.any() for value in net.kept().values())


def shuffled() -> Model:
    """a and b change places, c becomes the input that came before, d is c in another
    shape; y is the sum of all as they were."""
    kind, shape = DType.FLOAT32, (1, 4)
    names = ("x", "a", "b", "c", "ab", "cx", "y", "dab", "flat")
    tensors = {n: Tensor(n, shape, kind) for n in names}
    for name in ("d", "c4"):
        tensors[name] = Tensor(name, (2, 2), kind)
    nodes = (
        Node("add", "ab", ("a", "b"), ("ab",)),
        Node("add", "cx", ("c", "x"), ("cx",)),
        Node("reshape", "flat", ("d",), ("flat",)),
        Node("add", "dab", ("ab", "flat"), ("dab",)),
        Node("add", "y", ("dab", "cx"), ("y",)),
        Node("reshape", "c4", ("c",), ("c4",)),
    )

    def begun(first: float, *dims: int) -> Array:
        return np.arange(first, first + 4, dtype=np.float32).reshape(dims)

    state = {
        "a": State("b", begun(10, 1, 4)),
        "b": State("a", begun(100, 1, 4)),
        "c": State("x", begun(0, 1, 4)),
        "d": State("c4", np.zeros((2, 2), np.float32)),
    }
    graph = Graph("s", "s", nodes, tensors, ("x",), ("y",), state=state)
    return Model("s", graph, "litert", "")


@pytest.mark.parametrize("options", [{}, {"plan": "rows", "input": "keep"}])
def test_all_is_read_before_anything_is_assigned(options: dict[str, str]) -> None:
    made = shuffled()
    lib, before, state = made.build(**options), {}, None
    net = lib.host()
    for step in range(4):
        x = np.full((1, 4), 1000.0 * step, np.float32)
        values = interpret(made.graph, {"x": x}, state)
        lowered = interpret(lib.plan.graph, {"x": x}, before)
        state, before = (
            next_state(made.graph, values),
            next_state(lib.plan.graph, lowered),
        )
        found = recorded(net, {"x": x})
        np.testing.assert_array_equal(net.get_output("y"), values["y"])
        np.testing.assert_array_equal(lowered["y"], values["y"])
        for name, value in state.items():
            np.testing.assert_array_equal(net.kept()[name], value)
        np.testing.assert_array_equal(found["flat"], values["flat"])


def test_state_has_memory_of_its_own() -> None:
    lib = shuffled().build()
    assert lib.tables.state_bytes == 4 + 4 * 16
    held = {t.tensor: t.placement for t in lib.report.tensors}
    assert [held[n] for n in "abcd"] == ["whole"] * 4
    taken = sorted((k.at, k.at + k.bytes) for k in lib.plan.kept)
    others = [lib.plan.places[n].home for n in ("x", "y", "ab")]
    assert not any(a <= at < b for at in others for a, b in taken)


def test_what_was_saved_goes_on() -> None:
    made = shuffled().build()
    net, other = made.host(), made.host()
    x = np.ones((1, 4), np.float32)
    net(x=x)
    saved = net.save_state()
    want = [net(x=x)["y"] for _ in range(2)]
    other(x=3 * x)
    other.restore_state(saved)
    with pytest.raises(CrtError, match="CRT_ERR_NO_OUTPUT"):
        other.get_output("y")
    for value in want:
        np.testing.assert_array_equal(other(x=x)["y"], value)
    with pytest.raises(CrtError, match="CRT_ERR_SIZE"):
        net.restore_state(saved[:-1])
    with pytest.raises(CrtError, match="CRT_ERR_STATE"):
        pybuild.load(GRU, state={"h": "h_next"}).build().host().restore_state(bytes(68))
    with pytest.raises(CrtError, match="CRT_ERR_STATE"):
        pybuild.load(GRU).build().host().save_state()


def test_an_exported_library_keeps_its_state(tmp_path: Path) -> None:
    made = shuffled().build()
    made.export_library(tmp_path / "lib.zip")
    x = np.ones((1, 4), np.float32)
    nets = made.host(), pybuild.load_module(tmp_path / "lib.zip").host()
    for _ in range(2):
        first, second = (net(x=x)["y"] for net in nets)
        np.testing.assert_array_equal(first, second)
    rebuilt = pybuild.load_module(tmp_path / "lib.zip").built.host()
    np.testing.assert_array_equal(rebuilt(x=x)["y"], made.host()(x=x)["y"])


def test_models_that_keep_state_do_not_share_memory() -> None:
    models = {"a": shuffled(), "b": shuffled()}
    with pytest.raises(BuildError, match="'a' keeps state from run to run, the others"):
        build_image(models, exclusive=[("a", "b")])


def test_another_shape_cannot_be_assigned() -> None:
    graph = shuffled().graph
    state = {**graph.state, "a": State("c4", np.zeros((1, 4), np.float32))}
    with pytest.raises(BuildError, match=r"'a' is float32\[1, 4\], what it becomes is"):
        Model("s", replace(graph, state=state), "litert", "").build()


def test_each_sample_of_a_check_begins_anew() -> None:
    library = pybuild.load(GRU, state={"h": "h_next"}).build()
    assert check(GRU, library, ["llvm"], ref="numpy", samples=3).ok


PROGRAM = """
#include "gru.h"
#include <stdio.h>
#include <string.h>
static uint8_t arena[GRU_ARENA_BYTES] __attribute__((aligned(16)));
int main(void)
{
    const struct gru_memory memory = GRU_MEMORY(arena);
    static const float frame[GRU_FRAME_LEN] = {1.0f, -2.0f, 0.5f};
    uint8_t saved[GRU_STATE_BYTES];
    float first[GRU_SCORES_LEN], second[GRU_SCORES_LEN];
    struct gru m;
    int i, bad = gru_init(&m, &memory);

    bad |= gru_save_state(&m, saved);
    bad |= gru_save_state(NULL, saved) != CRT_ERR_NULL;
    for (i = 0; i < 2; i++) {
        bad |= gru_set_frame(&m, frame) | gru_run(&m);
        memcpy(i ? second : first, gru_scores(&m), sizeof first);
    }
    bad |= memcmp(first, second, sizeof first) == 0;
    for (i = 0; i < 2; i++) {
        bad |= i ? gru_reset(&m) : gru_restore_state(&m, saved);
        bad |= gru_set_frame(&m, frame) | gru_run(&m);
        bad |= memcmp(first, gru_scores(&m), sizeof first) != 0;
    }
    saved[0]++;
    bad |= gru_restore_state(&m, saved) != CRT_ERR_STATE;
    bad |= gru_selftest(&m);
    printf("%d\\n", bad);
    return bad;
}
"""


# @req NAME_save_state, NAME_restore_state, NAME_save_state:CRT_ERR_STATE
def test_the_printed_c_keeps_saves_and_forgets(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    pybuild.load(GRU, state={"h": "h_next"}).build(folder, name="gru")
    assert "#define GRU_STATE_BYTES 68u" in (folder / "gru.h").read_text()
    (folder / "example" / "main.c").write_text(PROGRAM)
    assert sanitized(folder) == "0\n"


def test_what_keeps_nothing_links_nothing_for_it(tmp_path: Path) -> None:
    pybuild.load(GRU).build(tmp_path / "tree", name="gru")
    assert not (tmp_path / "tree" / "crt" / "src" / "state.c").exists()
    text = (tmp_path / "tree" / "gru.h").read_text()
    assert "STATE" not in text and "state" not in text
