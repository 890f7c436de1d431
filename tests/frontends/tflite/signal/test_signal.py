"""TensorFlow Lite Micro's signal operators: numpy, C and LLVM give the integers of its
kernels, run after run; and its preprocessor on an emulated Cortex-M4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from pybuild.boards.device import open_device, program_of, run_program
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.frontends.tflite.operators.signal import SIGNAL
from pybuild.host.native import Net
from pybuild.library import Library
from pybuild.model import Model
from pybuild.ops.interpret import interpret, next_state
from tests.boards.devices import CORES
from tests.frontends.tflite.cases import compiled
from tests.frontends.tflite.signal.files import NAMES, Signal, drawn, mark, page, theirs
from tests.frontends.tflite.signal.preprocessor import preprocessor
from tests.ops.tflite_writer import FileOperator, FileTensor, write
from tests.toolchains import require

KINDS = ("int8", "float")
EVERY: dict[str, Signal] = {name: drawn(name) for name in NAMES}
EVERY |= {f"preprocessor_{kind}": preprocessor(kind) for kind in KINDS}
Runs = list[list[Array]]


def _library(name: str, target: str = "generic") -> Library:
    graph = load(f"{name}.tflite", EVERY[name].data, {})
    model = Model(f"{name}.tflite", graph, "litert", "0" * 64)
    return model.build(name=f"s_{name}", target=target)


def by_numpy(one: Signal) -> Runs:
    graph = load("m.tflite", one.data, {})
    state, made = None, []
    for sample in one.samples:
        given = dict(zip(graph.inputs, sample, strict=True))
        values = interpret(graph, given, state)
        state = next_state(graph, values)
        made.append([values[name] for name in graph.outputs])
    return made


def by_net(one: Signal, net: Net) -> Runs:
    graph, made = net.plan.graph, []
    names = graph.inputs
    for sample in one.samples:
        net.run(**dict(zip(names, sample, strict=True)))
        made.append([np.array(net.get_output(name)) for name in graph.outputs])
    return made


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """A name -> the net of each back end; the C of all is one file."""
    libraries = [_library(name) for name in EVERY]
    root = tmp_path_factory.mktemp("signal")
    found = compiled(libraries, root, ("c",))
    return {
        name: {**dict(every), "llvm": library.host("llvm")}
        for name, every, library in zip(EVERY, found, libraries, strict=True)
    }


@pytest.mark.parametrize("name", EVERY)
def test_every_integer_is_that_of_micro(
    name: str, nets: dict[str, dict[str, Any]]
) -> None:
    one = EVERY[name]
    assert len(one.samples) > 7
    assert mark(by_numpy(one), one.valid) == page()[name]
    for backend, net in nets[name].items():
        assert mark(by_net(one, net), one.valid) == page()[name], backend


@pytest.mark.parametrize("name", EVERY)
def test_the_marks_are_of_the_installed_micro(name: str) -> None:
    pytest.importorskip("tflite_micro", reason="tflite-micro is not installed")
    assert mark(theirs(EVERY[name]), EVERY[name].valid) == page()[name]


@pytest.mark.parametrize("kind", KINDS)
def test_the_preprocessor_on_a_cortex_m4(kind: str) -> None:
    """Frame by frame, with the noise of those before."""
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require(tool)
    name = f"preprocessor_{kind}"
    one, core = EVERY[name], "cortex-m4"
    program = program_of(
        open_device(CORES[core], "gcc", "qemu", core), _library(name, core)
    )
    device = open_device(CORES[core], "gcc", "qemu", core)
    samples = [{"audio": sample[0]} for sample in one.samples]
    graph = load("m.tflite", one.data, {})
    wanted, state = [], None
    for sample in samples:
        values = interpret(graph, sample, state)
        state = next_state(graph, values)
        wanted.append(values[graph.outputs[0]])
    made = run_program(device, program, samples)
    for ours, theirs_ in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(ours[graph.outputs[0]], theirs_)


def test_there_is_a_file_of_every_operator() -> None:
    told = b"".join(one.data for one in EVERY.values())
    assert len(SIGNAL) == 14
    assert all(code.removeprefix("CUSTOM ").encode() in told for code in SIGNAL)


def test_a_reset_forgets_noise_and_samples(nets: dict[str, dict[str, Any]]) -> None:
    for name in ("subtraction", "framer", "delay", "stacker", "overlap"):
        for net in nets[name].values():
            net.reset()
            first = by_net(EVERY[name], net)
            net.reset()
            assert mark(by_net(EVERY[name], net), False) == mark(first, False)


def _broken(code: str, shape: tuple[int, ...], kind: str, options: Any) -> bytes:
    tensors = [FileTensor("x", shape, kind), FileTensor("y", shape, kind)]
    custom = bytes(flexbuffers.Dumps(options))
    return write(tensors, [FileOperator(code, (0,), (1,), custom=custom)], [0], [1])


@pytest.mark.parametrize(
    ("code", "shape", "kind", "options", "what"),
    [
        ("Rfft", (8,), "INT16", {"T": 7}, "its option 'fft_length' is missing"),
        ("Rfft", (8,), "INT16", {"fft_length": 12}, "a transform of 12 numbers. "
         "Hint: a power of two from 4 to 4096"),
        ("Rfft", (8,), "INT16", {"fft_length": 4}, "8 numbers for a transform of 4"),
        ("Rfft", (8,), "FLOAT32", {"fft_length": 8}, "'x' is float32. Hint: the "
         "transform is for int16 and int32"),
        ("Energy", (8,), "INT16", {"start_index": 0, "end_index": 5},
         "end is 5, at most 4"),
        ("Energy", (8,), "INT16", {"start_index": 3, "end_index": 2},
         "start lies after"),
        ("FilterBankLog", (8,), "INT16",
         {"input_correction_bits": 0, "output_scale": 1}, "'x' is int16, not uint32"),
        ("Delay", (8,), "INT16", {"delay_length": -1},
         "'delay_length' is -1, not from 0"),
        ("Window", (8,), "INT16", {"shift": 3}, "input 1 is missing"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(
    code: str, shape: tuple[int, ...], kind: str, options: Any, what: str
) -> None:
    with pytest.raises(BuildError) as error:
        load("m.tflite", _broken(f"Signal{code}", shape, kind, options), {})
    assert what in str(error.value) and f"Signal{code}" in str(error.value)


def test_damaged_options_are_refused() -> None:
    data = _broken("SignalRfft", (8,), "INT16", {"T": 7, "fft_length": 8})
    start = data.index(b"fft_length")
    for at in range(start - 4, start + 30):
        broken = bytearray(data)
        broken[at] ^= 0xFF
        try:
            load("m.tflite", bytes(broken), {})
        except BuildError as error:
            assert "Signal" in str(error) or "m.tflite" in str(error)


def test_a_channel_outside_its_input_is_refused() -> None:
    one = np.ones(3, np.int16)
    tensors = [FileTensor("x", (8,), "UINT32")]
    for name, value in (
        ("weights", np.ones(9)), ("unweights", np.ones(9)),
        ("starts", one * 6), ("places", one * 0), ("widths", one * 3),
    ):  # fmt: skip
        tensors.append(FileTensor(name, value.shape, "INT16", value.astype(np.int16)))
    tensors.append(FileTensor("y", (2,), "UINT64"))
    custom = bytes(flexbuffers.Dumps({"num_channels": 2}))
    operator = FileOperator("SignalFilterBank", tuple(range(6)), (6,), custom=custom)
    with pytest.raises(BuildError, match="reads outside its input or weights"):
        load("m.tflite", write(tensors, [operator], [0], [6]), {})
