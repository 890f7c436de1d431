"""Modules that run in turn in one storage: what each finds there, and who waits."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pybuild import graph_executor
from pybuild.graph_executor import GraphModule
from pybuild.host.abi import CrtError
from pybuild.library import Library
from tests.executor.test_executor_weights import build, expected
from tests.executor.test_graph_executor import adder, image, module, scores


@pytest.fixture(scope="module")
def library() -> Library:
    return build()


def test_modules_in_one_storage(library: Library) -> None:
    large, small = module(library), adder()
    want = scores(module(library), 3)
    alone = max(sum(m.net.region_bytes) for m in (large, small))
    assert graph_executor.setup_shared_storage([large, small]) == alone
    assert np.may_share_memory(large.net.arena, small.net.arena)
    for _ in range(2):
        np.testing.assert_array_equal(scores(large, 3), want)
        small.run(x=np.ones(4, np.float32), y=np.ones(4, np.float32))
        assert small.get_output(0).tolist() == [2, 2, 2, 2]
        with pytest.raises(CrtError, match="CRT_ERR_NO_OUTPUT"):
            large.get_output(0)
        with pytest.raises(CrtError, match=r"CRT_ERR_INPUT_MISSING.*'image'"):
            large.run()
    small.run(x=np.ones(4, np.float32), y=np.ones(4, np.float32))
    with pytest.raises(CrtError, match="CRT_ERR_INPUT_MISSING"):
        large.run()
    small.run()  # nothing was taken from it by a run that was refused
    large.set_input("image", image())
    large.net.run_stage(0)
    with pytest.raises(CrtError, match="CRT_ERR_BUSY"):
        small.set_input("x", np.ones(4, np.float32))
    with pytest.raises(ValueError, match="shared storage"):
        adder().set_shared_input("x", small, "add")


def test_modules_in_one_storage_wait_for_each_other(library: Library) -> None:
    """Four threads; inputs and outputs are bound, so that none loses them."""
    modules = [module(library) for _ in range(4)]
    graph_executor.setup_shared_storage(modules, wait=20)
    wrong: list[object] = []

    def work(made: GraphModule, seed: int) -> None:
        want, out = expected(library, seed), np.zeros((1, 5), np.int8)
        made.set_input_zero_copy("image", image(seed))
        made.set_output_zero_copy(0, out)
        try:
            for _ in range(50):
                made.run()
                assert np.array_equal(out, want)
        except Exception as error:
            wrong.append(error)

    threads = [
        threading.Thread(target=work, args=(made, seed))
        for seed, made in enumerate(modules)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    graph_executor.setup_shared_storage(modules, wait=0.01)
    modules[0].set_input("image", image())
    modules[0].net.run_stage(0)
    with pytest.raises(CrtError, match="CRT_ERR_BUSY"):
        modules[1].run(image=image())
    with pytest.raises(ValueError, match="seconds"):
        graph_executor.setup_shared_storage(modules, wait=-1)
