"""Graph executor modules as scripts for TVM use them: inputs, outputs, names."""

from __future__ import annotations

import gc
import json

import numpy as np
import pytest

import pybuild as tvm
from pybuild import graph_executor
from pybuild.host.abi import CrtError, UnknownName
from pybuild.host.ndarray import Device
from pybuild.library import Library
from tests.frontends.graphjson.tvm_graphs import call, graph, null, simple
from tests.graphs.networks import classifier

ADD = [tvm.function("myadd", op="add")]
DEV = tvm.cpu(0)


def adder(shape: list[int] | None = None) -> graph_executor.GraphModule:
    return graph_executor.create(json.dumps(simple(shape=shape)), ADD, DEV)


@pytest.fixture(scope="module")
def library() -> Library:
    """Of a small network whose weights may be replaced."""
    model = classifier("tiny").model().with_parameters("replaceable")
    return tvm.build(model, target="llvm")


def image(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)


def module(library: Library, device: Device = DEV) -> graph_executor.GraphModule:
    return graph_executor.GraphModule(library["default"](device))


def scores(made: graph_executor.GraphModule, seed: int = 0) -> np.ndarray:
    made.run(image=image(seed))
    return made.get_output(0).numpy()


# ---- graphs of functions ------------------------------------------------------


def test_simple_add() -> None:
    made = adder()
    a, b = np.float32([1, 2, 3, 4]), np.float32([5, 6, 7, 8])
    made.run(x=a, y=b)
    out = made.get_output(0, tvm.nd.empty((4,)))
    np.testing.assert_array_equal(out.numpy(), a + b)
    np.testing.assert_array_equal(made.get_output("add").asnumpy(), a + b)


def test_sharing_with_ten_modules_and_the_donor_gone() -> None:
    x, y = np.ones(4, np.float32), np.float32([1, 2, 3, 4])
    blob = tvm.runtime.save_param_dict({"y": y})
    donor = adder()
    donor.load_params(blob)
    sharers = [adder() for _ in range(10)]
    for one in sharers:
        one.share_params(donor, blob)
    del donor
    gc.collect()
    for one in sharers:
        one.run(x=x)
        np.testing.assert_array_equal(one.get_output(0), x + y)
    addresses = {one.get_input("y").ctypes.data for one in sharers}
    assert len(addresses) == 1


def test_load_params_passes_over_what_the_graph_does_not_know() -> None:
    made = adder()
    extra = {"y": np.ones(4, np.float32), "elsewhere": np.ones(9, np.float32)}
    made.load_params(tvm.runtime.save_param_dict(extra))
    made.run(x=np.zeros(4, np.float32))
    assert made.get_output(0).tolist() == [1, 1, 1, 1]
    assert made.get_input_info() == ({"x": (4,)}, {"x": "float32"})


def test_parameters_in_files(tmp_path) -> None:
    given = {"y": np.float32([1, 2]), "a" * 200: np.int8([[1]])}
    file = tmp_path / "weights.params"
    tvm.runtime.save_param_dict_to_file(given, file)
    read = tvm.runtime.load_param_dict_from_file(file)
    assert list(read) == sorted(given)
    for name, value in given.items():
        np.testing.assert_array_equal(read[name].numpy(), value)
    again = tvm.runtime.save_param_dict(dict(reversed(list(read.items()))))
    assert bytes(again) == file.read_bytes()


def test_several_outputs_by_index_and_name() -> None:
    nodes = [null("x"), call("one", "myadd", [[0, 0], [0, 0]]),
             call("two", "myadd", [[1, 0], [0, 0]])]  # fmt: skip
    top = graph(nodes, [0], [[1, 0], [2, 0], [0, 0], [1, 0]], [[2]] * 3)
    made = graph_executor.create(json.dumps(top), ADD, DEV)
    made.run(x=np.float32([1, 2]))
    assert made.get_num_outputs() == 4
    found = [made.get_output(i).tolist() for i in range(4)]
    assert found == [[2, 4], [3, 6], [1, 2], [2, 4]]
    assert made.get_output("two").tolist() == [3, 6]
    assert set(made.get_output_info()[0]) >= {"one", "two"}


def test_a_lazy_input_is_bound_by_zero_copy() -> None:
    top = simple()
    top["attrs"]["lazy_init_input"] = ["list_str", ["y"]]
    made = graph_executor.create(json.dumps(top), ADD, DEV)
    made.set_input("x", np.ones(4, np.float32))
    with pytest.raises(CrtError, match=r"CRT_ERR_UNBOUND.*'y'"):
        made.run()
    with pytest.raises(CrtError, match="CRT_ERR_LAZY"):
        made.set_input("y", np.ones(4, np.float32))
    with pytest.raises(CrtError, match=r"CRT_ERR_UNBOUND.*'y'"):
        made.get_input("y")
    with pytest.raises(CrtError, match=r"CRT_ERR_UNBOUND.*'y'"):
        made.setup_operators()
    y = np.float32([1, 2, 3, 4])
    made.set_input_zero_copy("y", y)
    made.setup_operators()
    made.run()
    assert made.get_output(0).tolist() == [2, 3, 4, 5]
    y += 1
    made.run()
    assert made.get_output(0).tolist() == [3, 4, 5, 6]
    made.set_input_zero_copy("y", None)
    with pytest.raises(CrtError, match=r"CRT_ERR_UNBOUND.*'y'"):
        made.run()


# ---- inputs and outputs of a model --------------------------------------------


def test_counts_and_indices_are_of_inputs_then_parameters(library: Library) -> None:
    made = module(library)
    assert (made.get_num_inputs(), made.get_num_params()) == (1, 6)
    assert made.get_num_outputs() == 1
    assert made.get_input_index("image") == 0
    names = [made._name(i) for i in range(7)]
    assert [made.get_input_index(name) for name in names] == list(range(7))
    assert made.get_input_index("nothing") == -1
    assert made.get_input_info() == ({"image": (1, 8, 8, 3)}, {"image": "int8"})
    assert made.get_output_info() == ({"scores": (1, 5)}, {"scores": "int8"})


def test_an_input_is_set_once_for_many_runs(library: Library) -> None:
    made = module(library)
    first = scores(made)
    made.run()
    np.testing.assert_array_equal(made.get_output("scores"), first)
    assert not np.array_equal(scores(made, 1), first)


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.set_input("audio", 0), lambda m: m.set_input(7, 0),
        lambda m: m.run(audio=0), lambda m: m.get_input("audio"),
        lambda m: m.set_input_zero_copy("audio", image()),
        lambda m: m.share_params(m, ["audio"]),
    ],
)  # fmt: skip
def test_unknown_names_are_errors_that_list_the_known(library: Library, ask) -> None:
    for kind in (KeyError, RuntimeError, AttributeError):
        with pytest.raises(kind, match=r"'image'|there are 7"):
            ask(module(library))


def test_unknown_outputs_and_functions_are_errors(library: Library) -> None:
    made = module(library)
    scores(made)
    with pytest.raises(UnknownName, match="'scores'"):
        made.get_output("label")
    with pytest.raises(UnknownName, match="there are 1"):
        made.get_output(1)
    with pytest.raises(UnknownName, match="set_output_zero_copy"):
        made["set_outputs"]
    with pytest.raises(UnknownName, match="'default'"):
        library["encoder"]
    with pytest.raises(NotImplementedError, match="debug_executor"):
        made.debug_get_output(0)


def test_functions_are_there_by_name(library: Library) -> None:
    made = library["default"](DEV)
    made["set_input"]("image", image())
    made["run"]()
    assert made["get_num_outputs"]() == 1
    np.testing.assert_array_equal(made["get_output"](0), scores(module(library)))


def test_nothing_is_set_where_one_name_is_wrong(library: Library) -> None:
    made = module(library)
    first = scores(made)
    with pytest.raises(UnknownName):
        made.set_input(image=image(1), audio=0)
    made.run()
    np.testing.assert_array_equal(made.get_output(0), first)


def test_values_are_converted_only_where_nothing_is_lost(library: Library) -> None:
    made = module(library)
    made.set_input("image", image().astype(np.int64).tolist())
    made.run()
    np.testing.assert_array_equal(made.get_output(0), scores(module(library)))
    with pytest.raises(ValueError, match=r"int8\[1, 8, 8, 3\], which cannot hold"):
        made.set_input("image", image().astype(np.int64) + 100)
    with pytest.raises(ValueError, match=r"not float32"):
        made.set_input("image", image().astype(np.float32))
    with pytest.raises(ValueError, match=r"not int8\[192\]"):
        made.set_input("image", image().ravel())


def test_get_output_before_a_run_is_an_error(library: Library) -> None:
    with pytest.raises(CrtError, match="CRT_ERR_NO_OUTPUT"):
        module(library).get_output(0)


def test_outputs_are_live_and_copies_are_not(library: Library) -> None:
    made = module(library)
    scores(made)
    live, kept = made.get_output(0), made.get_output(0).numpy()
    out = tvm.nd.empty((1, 5), "int8")
    assert made.get_output("scores", out) is out
    other = scores(made, 3)
    np.testing.assert_array_equal(live, other)
    np.testing.assert_array_equal(out, kept)
    assert not np.array_equal(kept, other)
    with pytest.raises(ValueError, match=r"int8\[1, 5\]"):
        made.get_output(0, tvm.nd.empty((5,), "int8"))


def test_memory_outlives_the_module(library: Library) -> None:
    made = module(library)
    want = scores(made)
    live = made.get_output(0)
    del made
    gc.collect()
    np.testing.assert_array_equal(live, want)


def test_an_input_can_be_filled_in_place(library: Library) -> None:
    made = module(library)
    made.get_input("image").copyfrom(image(2))
    made.run()
    np.testing.assert_array_equal(made.get_output(0), scores(module(library), 2))
    out = np.empty((1, 8, 8, 3), np.int8)
    np.testing.assert_array_equal(made.get_input(0, out), image(2))


# ---- zero copy ----------------------------------------------------------------


def test_zero_copy_of_inputs_and_outputs(library: Library) -> None:
    made = module(library)
    given, out = image(4), np.zeros((1, 5), np.int8)
    made.set_input("image", given, copy=False)
    made.set_output_zero_copy("scores", out)
    made.run()
    np.testing.assert_array_equal(out, scores(module(library), 4))
    given[:] = image(5)
    made.run()
    np.testing.assert_array_equal(out, scores(module(library), 5))
    assert made.get_output(0).ctypes.data == out.ctypes.data
    before = given.copy()
    made.set_input("image", image(6))
    np.testing.assert_array_equal(given, before)


def test_zero_copy_checks_type_shape_and_order(library: Library) -> None:
    made = module(library)
    with pytest.raises(ValueError, match="not uint8"):
        made.set_input_zero_copy("image", image().view(np.uint8))
    with pytest.raises(ValueError, match=r"not int8\[1, 8, 3, 8\]"):
        made.set_input_zero_copy("image", image().reshape(1, 8, 3, 8))
    with pytest.raises(ValueError, match="contiguous"):
        made.set_input_zero_copy("image", image()[:, :, ::-1])
    fixed = np.zeros((1, 5), np.int8)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        made.set_output_zero_copy(0, fixed)


@pytest.mark.parametrize("which", ["reshape of an input", "an input", "reshape"])
def test_zero_copy_behind_views(which: str) -> None:
    """Where TVM read or wrote another buffer: reshapes, inputs that are outputs."""
    view = call("view", "__nop", [[0, 0]])
    if which == "an input":
        nodes, heads = (
            [null("x"), call("y", "myadd", [[0, 0], [0, 0]])],
            [[1, 0], [0, 0]],
        )
        shapes, storage = [[4], [4]], [0, 1]
    elif which == "reshape":
        last = call("view", "__nop", [[1, 0]])
        nodes = [null("x"), call("y", "myadd", [[0, 0], [0, 0]]), last]
        heads, shapes, storage = [[2, 0]], [[4], [4], [2, 2]], [0, 1, 1]
    else:
        nodes = [null("x"), view, call("y", "myadd", [[1, 0], [1, 0]])]
        heads, shapes, storage = [[2, 0], [1, 0]], [[4], [2, 2], [2, 2]], [0, 0, 1]
    top = graph(nodes, [0], heads, shapes, storage=storage)
    made = graph_executor.create(json.dumps(top), ADD, DEV)
    x = np.float32([1, 2, 3, 4])
    made.set_input_zero_copy("x", x)
    outs = [np.zeros(t.shape, np.float32) for t in made.net.results]
    for index, out in enumerate(outs):
        made.set_output_zero_copy(index, out)
    for _ in range(2):
        made.run()
        wanted = [2 * x if node else x for node, _ in heads]
        if which.startswith("reshape of"):
            wanted = [2 * x, x]
        for out, want in zip(outs, wanted, strict=True):
            np.testing.assert_array_equal(out.ravel(), want)
        x += 1
