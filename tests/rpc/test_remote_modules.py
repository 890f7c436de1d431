"""Graph executor modules on a board behave as those on this machine."""

from __future__ import annotations

import gc
import logging

import numpy as np
import pytest

import pybuild as tvm
from pybuild import debug_executor, graph_executor
from pybuild.errors import BuildError
from pybuild.graph_executor import GraphModule
from pybuild.host.abi import CrtError, UnknownName
from pybuild.library import Library
from pybuild.ops.interpret import interpret
from pybuild.rpc import RemoteError
from pybuild.rpc.remote import Wired
from tests.executor.test_graph_executor import image
from tests.executor.test_threads_and_ends import in_threads
from tests.graphs.networks import classifier
from tests.rpc.lines import Host, HostLine, board

LAYERS = ["stem", "depth", "residual", "pool", "flat", "logits", "scores"]


def build(params: str | None = "replaceable", **options) -> Library:
    model = classifier("tiny").model().with_parameters(params)
    return model.build(
        target="generic", **{"input": "keep", "plan": "whole", **options}
    )


@pytest.fixture(scope="module")
def library() -> Library:
    return build()


@pytest.fixture
def remote(library: Library) -> Wired:
    return board(library)


def create(library: Library, remote: Wired) -> GraphModule:
    text, code = library.get_graph_json(), library.get_lib()
    return graph_executor.create(text, code, remote.device(0))


def blob(library: Library) -> bytes:
    return bytes(tvm.runtime.save_param_dict(library.get_params()))


def expected(library: Library, seed: int = 0) -> np.ndarray:
    return interpret(library.plan.graph, {"image": image(seed)})["scores"]


def used(remote: Wired) -> int:
    """Bytes of the board's memory that objects take: what is left is tried out."""
    gc.collect()
    low, high = 0, remote.board.welcome.memory
    while high - low > 16:
        middle = (low + high) // 2
        try:
            number = remote.board.allocate(middle)
        except CrtError:
            high = middle
        else:
            remote.board._left.append(number)
            low = middle
    return remote.board.welcome.memory - low


def test_set_run_get(library: Library, remote: Wired) -> None:
    module = GraphModule(library["default"](remote.device(0)))
    module.set_input("image", tvm.nd.array(image(1), remote.device(0)))
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), expected(library, 1))
    module.run(image=image(2))
    out = tvm.nd.empty((1, 5), "int8")
    module.get_output("scores", out)
    np.testing.assert_array_equal(out, expected(library, 2))
    assert module.get_num_inputs() == 1 and module.get_num_outputs() == 1
    assert module.get_input_index("image") == 0
    assert str(remote.cpu(0)) == "remote cpu(0)"


def test_one_session_in_two_threads(library: Library, remote: Wired) -> None:
    shared = library["default"](remote.device(0))
    want = [expected(library, seed) for seed in range(2)]

    def work(number: int) -> None:
        own = library["default"](remote.device(0))
        for _ in range(8):
            for module in (own, shared):
                given = ("image", image(number))
                (scores,) = module.run_from_inputs(1, 0, *given)
                np.testing.assert_array_equal(scores, want[number])

    in_threads(2, work)


def test_inputs_are_read_and_filled(library: Library, remote: Wired) -> None:
    module = library["default"](remote.device(0))
    module.set_input("image", image(3))
    np.testing.assert_array_equal(module.get_input("image"), image(3))
    module.get_input(0).copyfrom(image(4))
    module.run()
    np.testing.assert_array_equal(module.get_output(0), expected(library, 4))


def test_errors_are_those_of_this_machine(library: Library, remote: Wired) -> None:
    here = library["default"](tvm.cpu(0))
    there = library["default"](remote.device(0))
    wrong = [
        lambda m: m.get_output(0),
        lambda m: m.run(),
        lambda m: m.set_input("picture", image()),
        lambda m: m.set_input("image", image()[0]),
        lambda m: m.get_output("nothing"),
        lambda m: m.get_output(9),
        lambda m: m["nothing"],
        lambda m: m.get_input(99),
    ]
    for call in wrong:
        said = []
        for module in (here, there):
            with pytest.raises(Exception) as caught:
                call(module)
            said.append((type(caught.value), str(caught.value)))
        assert said[0] == said[1]


def test_weights_are_late_and_replaced(library: Library, remote: Wired) -> None:
    module = create(library, remote)
    module.set_input("image", image())
    with pytest.raises(CrtError, match=r"CRT_ERR_UNBOUND: .*: '"):
        module.run()
    module.load_params(blob(library))
    module.setup_operators()
    module.run()
    np.testing.assert_array_equal(module.get_output(0), expected(library))
    bias = library.value("logits/b")
    module.set_input("logits/b", bias + 4000)
    module.run()
    assert not np.array_equal(module.get_output(0), expected(library))
    np.testing.assert_array_equal(module.get_input("logits/b"), bias + 4000)
    module.load_params(library.image())
    module.run()
    np.testing.assert_array_equal(module.get_output(0), expected(library))


def test_packed_weights_are_unpacked_before_they_are_sent() -> None:
    library = build(compress="lz4")
    module = library["default"](board(library).device(0))
    module.run(image=image())
    np.testing.assert_array_equal(module.get_output(0), expected(library))


def test_instances_share_weights_on_the_board(library: Library, remote: Wired) -> None:
    empty = used(remote)
    one = library["default"](remote.device(0))
    first = used(remote) - empty
    others = [create(library, remote) for _ in range(3)]
    for other in others:
        other.share_params(one)
    weights = len(library.image())
    assert used(remote) - empty < 4 * (first - weights) + weights + 200
    del one  # the weights stay for those that share them
    gc.collect()
    for seed, other in enumerate(others):
        other.run(image=image(seed))
        np.testing.assert_array_equal(other.get_output(0), expected(library, seed))
    del other
    others.clear()
    assert used(remote) == empty


def test_the_same_weights_are_sent_once(library: Library, remote: Wired) -> None:
    modules = [library["default"](remote.device(0)) for _ in range(2)]
    images = remote.board._images
    assert len(images) == 1
    del modules
    gc.collect()
    assert len(images) == 0


def test_an_output_is_the_next_input_on_the_board() -> None:
    graph = tvm.GraphBuilder("double")
    x = graph.input("x", (1, 8), "float32")
    graph.output(graph.op("add", x, x), "y")
    library = tvm.build(graph.build(), target="generic", input="keep")
    remote = board(library)
    first, second = (library["default"](remote.device(0)) for _ in range(2))
    second.set_shared_input("x", first, 0)
    first.run(x=np.arange(8, dtype=np.float32).reshape(1, 8))
    second.run()
    np.testing.assert_array_equal(
        second.get_output(0)[0], 4 * np.arange(8, dtype=np.float32)
    )
    second.set_input("x", np.ones((1, 8), np.float32))
    second.run()
    np.testing.assert_array_equal(second.get_output(0)[0], 2 * np.ones(8))


def test_what_cannot_be_on_a_board(library: Library, remote: Wired) -> None:
    there, here = library["default"](remote.device(0)), library["default"](tvm.cpu(0))
    copied = "'image' cannot be where an array of this machine is: set_input and "
    with pytest.raises(ValueError, match=copied):
        there.set_input_zero_copy("image", image())
    with pytest.raises(ValueError, match="one of the modules is on a board, the other"):
        there.share_params(here)
    with pytest.raises(ValueError, match="one of the modules is on a board, the other"):
        here.set_shared_input("image", there, 0)
    with pytest.raises(ValueError, match="is not this machine's"):
        graph_executor.setup_shared_storage([here, there])
    other = library["default"](board(library).device(0))
    with pytest.raises(ValueError, match="the other module is on another board"):
        there.share_params(other)


def test_all_devices_are_remote_or_none(library: Library, remote: Wired) -> None:
    text, code = library.get_graph_json(), library.get_lib()
    device = remote.device(0)
    assert graph_executor.get_device(code, device) == ([device], 1, [1, 0])
    mixed = "^Either all or none of the devices should be rpc.$"
    with pytest.raises(ValueError, match=mixed):
        graph_executor.create(text, code, [tvm.cpu(0), device])
    with pytest.raises(ValueError, match="the devices are of different boards"):
        graph_executor.create(text, code, [device, board(library).device(0)])
    with pytest.raises(ValueError, match="a board is one device: give it alone"):
        graph_executor.create(text, code, [device, device])
    with pytest.raises(ValueError, match=r"^host has one device, number 0, not 1$"):
        remote.device(1)


def test_another_library_is_an_error_with_a_way_out(remote: Wired) -> None:
    other = build(None)
    where = remote.board.welcome
    wanted = (
        f"host: the board has the library '{where.library}', not 'tiny-[0-9a-f]{{16}}'."
        " Hint: flash firmware that serves it, see docs/rpc-protocol.md"
    )
    with pytest.raises(BuildError, match=f"^{wanted}$"):
        create(other, remote)
    host = tvm.build(classifier("tiny").model(), target="llvm")
    with pytest.raises(BuildError, match="pybuild does not know the board 'host'"):
        create(host, remote)


def test_a_benchmark_is_timed_on_the_board(library: Library, remote: Wired) -> None:
    """The counter of the tests' board goes on by 1000 of 1000000 a second with each
    look: a run takes a millisecond, whatever this machine needs."""
    module = library["default"](remote.device(0))
    result = module.benchmark(remote.device(0), repeat=3, number=4, image=image())
    assert result.results == [0.001] * 3
    longer = module.time_evaluator("run", number=1, repeat=1, min_repeat_ms=20)()
    assert longer.results == [pytest.approx(0.001)]
    whole = module.benchmark(remote.device(0), repeat=2, end_to_end=True, image=image())
    assert len(whole.results) == 2


def test_each_layer_by_the_debug_executor(library: Library, remote, tmp_path) -> None:
    text = library.get_graph_json()
    debug = debug_executor.create(text, library, remote.device(0), tmp_path / "dump")
    debug.set_input("image", image())
    wanted = interpret(library.plan.graph, {"image": image()})
    for name in LAYERS:
        np.testing.assert_array_equal(debug.debug_get_output(name), wanted[name])
    times = debug.run_individual(number=2, repeat=2)
    layers = [
        row for node, row in zip(debug.nodes, times, strict=True) if node.step >= 0
    ]
    assert layers == [[0.001, 0.001]] * len(layers) and len(layers) >= 5
    assert debug.run_individual_node("logits").results == [pytest.approx(0.001)]
    debug.run(number=1, min_repeat_ms=0)
    assert (tmp_path / "dump" / "_tvmdbg_device_CPU_0").is_dir()
    assert debug.profile(image=image()).calls[0]["Device"] == "remote cpu(0)"


def test_layers_where_memory_is_short() -> None:
    """Not all tensors fit beside the model: several runs, inputs given again."""
    library = build(None, input="reuse")
    remote = board(library)
    debug = debug_executor.create(library.get_graph_json(), library, remote.device(0))
    debug.set_input("image", image())
    wanted = interpret(library.plan.graph, {"image": image()})
    sizes = {step.node.output: library.plan.graph.tensor(step.node.output).bytes
             for step in library.plan.steps}  # fmt: skip
    table = 8 * len(library.plan.steps)
    left = remote.board.welcome.memory - used(remote)
    keep = remote.board.allocate(left - max(sizes.values()) - table - 32)
    for name in LAYERS[:3]:
        debug.set_input("image", image())
        np.testing.assert_array_equal(debug.debug_get_output(name), wanted[name])
    remote.board._left.append(keep)
    remote.board.allocate(left - table - 8)
    debug.set_input("image", image())
    with pytest.raises(BuildError, match="has too little memory for a tensor"):
        debug.debug_get_output("stem")
    debug.exit()


def test_too_many_instances(library: Library, remote: Wired) -> None:
    modules = []
    with pytest.raises(CrtError, match="CRT_ERR_MEMORY: the board has no memory left"):
        while True:
            modules.append(library["default"](remote.device(0)))
    assert len(modules) > 3
    modules.pop()
    gc.collect()
    assert library["default"](remote.device(0)).get_num_inputs() == 1


def test_board_memory_errors_say_how_much_there_is(remote: Wired) -> None:
    with pytest.raises(CrtError, match="99999999 bytes; all that it has is 1048576"):
        remote.board.allocate(99999999)


def test_logs_go_to_logging(library: Library, caplog) -> None:
    host = Host(library)
    remote = board(library, HostLine(host))
    with caplog.at_level(logging.INFO, logger="pybuild.rpc"):
        host.log("it is warm here")
        create(library, remote)
    assert [r.getMessage() for r in caplog.records] == ["it is warm here"]


def test_an_exported_library_runs_there(library: Library, tmp_path) -> None:
    library.export_library(tmp_path / "lib.so")
    again = tvm.runtime.load_module(tmp_path / "lib.so")
    module = again["default"](board(library).device(0))
    module.run(image=image())
    np.testing.assert_array_equal(module.get_output(0), expected(library))


def test_closed_is_closed(library: Library) -> None:
    with board(library) as remote:
        module = library["default"](remote.device(0))
    for call in (
        lambda: remote.board,
        lambda: library["default"](remote.device(0)),
        module.run,
    ):
        with pytest.raises(RemoteError, match=r"^host: the session was closed$"):
            call()
    assert repr(remote) == "Wired('host', closed)"
    assert isinstance(module, GraphModule)
    with pytest.raises(UnknownName):
        module.set_input("nothing", 1)
