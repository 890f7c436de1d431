"""Modules in several threads, what is left of libraries when they are gone, numpy's
integers as indices, inputs that a run uses up."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild import debug_executor
from pybuild.graph_executor import GraphModule
from pybuild.host.abi import CrtError, UnknownName
from pybuild.host.parameter_image import Weights
from pybuild.install import host_compiler
from pybuild.library import Library
from pybuild.params.image_write import plain, write_image
from tests.executor.test_graph_executor import image
from tests.frontends.graphjson.tvm_graphs import duplex
from tests.graphs.networks import classifier
from tests.toolchains import absent

CPU, EXT = pybuild.cpu(0), pybuild.ext_dev(0)


@pytest.fixture(scope="module")
def library() -> Library:
    """Its input is used up by a run."""
    return classifier("tiny").model().build()


@pytest.fixture(scope="module")
def replaceable() -> Library:
    model = classifier("tiny").model().with_parameters("replaceable")
    return model.build(input="keep")


def wanted(library: Library, seed: int) -> np.ndarray:
    return library.host().run(image=image(seed))["scores"]


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Errors  the first that a thread raised"""
    found: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            found.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if found:
        raise found[0]


def test_one_module_in_four_threads(library: Library) -> None:
    module = library["default"](CPU)
    want = [wanted(library, seed) for seed in range(4)]

    def work(number: int) -> None:
        for turn in range(150):
            if turn % 2:
                (scores,) = module.run_from_inputs(1, 0, "image", image(number))
            else:
                with module.lock:
                    module.set_input("image", image(number))
                    module.run()
                    scores = module.get_output(0).numpy()
            np.testing.assert_array_equal(scores, want[number])

    in_threads(4, work)


def test_one_instance_in_four_threads(library: Library) -> None:
    net = library.host()
    want = [wanted(library, seed) for seed in range(4)]

    def work(number: int) -> None:
        for _ in range(150):
            have = net.run(image=image(number))["scores"]
            np.testing.assert_array_equal(have, want[number])

    in_threads(4, work)


def test_modules_share_with_each_other_in_two_threads(replaceable: Library) -> None:
    modules = [replaceable["default"](CPU) for _ in range(2)]

    def work(number: int) -> None:
        for _ in range(50):
            modules[number].share_params(modules[1 - number])
            modules[number].run_from_inputs(1, 0, "image", image(number))

    in_threads(2, work)


def test_numpy_integers_are_indices(library: Library) -> None:
    module = library["debug_create"]("default", CPU)
    for kind in (np.int64, np.int32, np.uint8):
        module.set_input(kind(0), image(1))
        GraphModule.run(module)
        want = wanted(library, 1)
        np.testing.assert_array_equal(module.get_output(kind(0)), want)
        assert module.get_input(kind(0)).shape == image(1).shape
        module.set_input(kind(0), image(1))
        assert module.run_individual_node(kind(0), number=1).mean == 0
        module.execute_node(kind(1))
        assert module.get_node_output(kind(1), kind(0)).size
    net = library.host()
    net.set_input(np.int64(0), image(1))
    net.go()
    np.testing.assert_array_equal(net.get_output(np.uint16(0)), want)
    assert pybuild.cpu(np.int64(0)) == CPU and pybuild.device(np.int64(1)) == CPU
    with pytest.raises(UnknownName, match="output 9: there are 1"):
        net.get_output(np.int64(9))
    with pytest.raises(UnknownName, match=r"1\.0"):
        net.get_output(np.float64(1))


def test_the_debug_executor_gives_inputs_again(library: Library) -> None:
    module = library["debug_create"]("default", CPU)
    module.run(image=image(2), number=2, repeat=2)
    want = wanted(library, 2)
    np.testing.assert_array_equal(module.get_output(0), want)
    tensors = module.debug_datum.tensors
    found = next(v for key, v in tensors.items() if key.startswith("scores"))
    np.testing.assert_array_equal(found, want)
    module.profile(image=image(2))
    module.set_input("image", image(2))
    assert len(module.run_individual(2)) == len(module.nodes)
    assert module.benchmark(image=image(2), repeat=2, number=3).mean > 0
    module.exit()


def test_each_node_of_two_devices_is_timed() -> None:
    functions = [pybuild.function("elemwise_add", op="add"),
                 pybuild.function("elemwise_sub", op="sub"),
                 pybuild.function("myadd", op="add")]  # fmt: skip
    import json

    top = duplex()
    kinds = top["attrs"]["device_index"][1]
    top["attrs"]["device_index"][1] = [12 if kind == 2 else 1 for kind in kinds]
    module = debug_executor.create(json.dumps(top), functions, [CPU, EXT])
    for name in "ABCD":
        module.set_input(name, np.arange(4, dtype=np.float32))
    assert any(not step.is_layer for step in module.net.plan.steps)
    for index, node in enumerate(module.nodes):
        spent = module.run_individual_node(index, number=2, repeat=2).results
        assert len(spent) == 2 and (node.step < 0 or min(spent) >= 0)
    net = module.net
    alone = [i for i, step in enumerate(net.plan.steps) if not step.is_layer]
    for step in alone:
        with pytest.raises(CrtError, match="CRT_ERR_TASK"):
            net.run_step(step)
    module.exit()


def test_nothing_is_bound_where_runs_write(library: Library) -> None:
    net = library.host()
    there = net.arena[: image(0).size].view(np.int8)
    shifted = net.arena[16 : 16 + image(0).size].view(np.int8)
    with pytest.raises(CrtError, match=r"CRT_ERR_OVERLAP.*'image'"):
        net.bind_input("image", shifted.reshape(image(0).shape))
    module = library["default"](CPU)
    module.run(image=image(1))
    with pytest.raises(CrtError, match="CRT_ERR_OVERLAP"):
        module.set_output_zero_copy(0, module.net.arena[64:69].view(np.int8)[None])
    # a copy may come from anywhere, the arena too
    there[:] = image(3).reshape(-1)
    shifted[:] = image(3).reshape(-1)
    net.run(image=shifted.reshape(image(0).shape))
    np.testing.assert_array_equal(net.get_output(0), wanted(library, 3))


def test_an_image_of_another_model_is_an_error(replaceable: Library) -> None:
    strange = write_image(plain({"alpha": np.zeros(4, np.float32)}))
    with pytest.raises(CrtError, match="CRT_ERR_NAME"):
        replaceable.host().load_params(Weights(strange))
    with pytest.raises(UnknownName, match="the image has 'alpha', the model 'image'"):
        replaceable["default"](CPU).load_params(strange)


def test_what_is_not_pickled_says_so(library: Library) -> None:
    with pytest.raises(TypeError, match=r"export_library\(path\) writes it"):
        pickle.dumps(library)
    with pytest.raises(TypeError, match="make one of the library there"):
        pickle.dumps(library.host())
    with pytest.raises(TypeError, match="is not pickled"):
        pickle.dumps(library["default"](CPU))


def test_a_closed_instance_touches_no_code(library: Library) -> None:
    net = library.host()
    net.close()
    for call in (lambda: net.flags(0), lambda: net.stages, lambda: net.run_step(0)):
        with pytest.raises(ValueError, match="the instance is closed"):
            call()


def resident() -> int:
    """KB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def deleted() -> set[str]:
    """Libraries of ours that are mapped and whose files are gone."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {x for x in lines if "/crt-" in x and x.endswith("(deleted)")}


MOST = 2048  # KB that any number of them may leave
WARM = 10


def leaves_nothing(count: int, work: Callable[[], Any]) -> Any:
    """What the last of `count` gave, after some that warm up."""
    for _ in range(min(WARM, count)):
        work()
    gc.collect()
    left, before = deleted(), resident()  # of other tests of this process, too
    for _ in range(count):
        last = work()
    gc.collect()
    grown = resident() - before
    assert deleted() <= left
    assert grown <= MOST, f"{grown} KB by {count}"
    return last


def must_compile(backend: str) -> None:
    if backend == "c" and not host_compiler():
        absent("there is no C compiler")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("backend", "count"),
    [("c", 500), ("llvm", 10), pytest.param("llvm", 500, marks=pytest.mark.sweep)],
)
def test_compiled_code_goes_with_its_last_user(
    backend: str, count: int, library: Library, tmp_path: Path
) -> None:
    """Loaded, created, run, closed."""
    must_compile(backend)
    replace(library, backend=backend).export_library(tmp_path / "g.zip")

    def cycle() -> Any:
        module = pybuild.load_module(tmp_path / "g.zip")["default"](CPU)
        module.run(image=image(1))
        found = module.get_output(0)
        module.close()
        return found

    last = leaves_nothing(count, cycle)
    np.testing.assert_array_equal(last, wanted(library, 1))  # memory of its own


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("backend", "count"),
    [
        ("c", 3),
        ("llvm", 5),
        pytest.param("c", 50, marks=pytest.mark.sweep),
        pytest.param("llvm", 50, marks=pytest.mark.sweep),
    ],
)
def test_a_build_goes_with_its_last_user(
    backend: str, count: int, library: Library
) -> None:
    """Built, compiled, run, closed."""
    must_compile(backend)
    model = classifier("tiny").model()

    def build() -> Any:
        net = model.build().host(backend)
        found = net.run(image=image(1))["scores"].copy()
        net.close()
        return found

    last = leaves_nothing(count, build)
    np.testing.assert_array_equal(last, wanted(library, 1))
