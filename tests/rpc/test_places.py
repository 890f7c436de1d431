"""Places of boards: simulators that are built and started, serial ports, TCP."""

from __future__ import annotations

import gc
import json
import os
import pty
import re
import select
import signal
import socket
import threading
import tty
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import pybuild as tvm
from pybuild import debug_executor, graph_executor, rpc
from pybuild.boards.simulators.qemu import find_qemu
from pybuild.boards.simulators.unicorn import find_unicorn
from pybuild.errors import BuildError
from pybuild.ops.interpret import interpret
from pybuild.rpc import RemoteError
from pybuild.targets.board import load_board
from tests.executor.test_graph_executor import image
from tests.executor.test_threads_and_ends import in_threads
from tests.graphs.networks import classifier
from tests.rpc.lines import Host, board, library
from tests.toolchains import (
    INCLUDE,
    ROOT,
    STRICT,
    absent,
    require,
    require_module,
    run,
)

MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"
DIGITS = np.arange(-32, 32, dtype=np.int8).reshape(1, 8, 8, 1)


def place(kind: str, name: str) -> str:
    """A simulator, or the test is skipped for want of it."""
    require("arm-none-eabi-gcc")
    facts = load_board(name)
    found = find_qemu(facts) if kind == "qemu" else find_unicorn(facts)
    return f"{kind}:{name}" if found else absent(f"there is no {kind} of {name}")


def build(**options) -> tvm.Library:
    model = classifier("tiny").model().with_parameters("replaceable")
    return tvm.build(model, target="llvm", **options)


def wanted(lib: tvm.Library, seed: int) -> np.ndarray:
    return interpret(lib.plan.graph, {"image": image(seed)})["scores"]


@pytest.mark.parametrize("kind", ["qemu", "unicorn"])
def test_a_simulated_board(kind: str) -> None:
    """Everything that a module does, on a Cortex-M4; then another library."""
    lib = build()
    with rpc.connect(place(kind, "mps2-an386"), lib) as remote:
        device = remote.device(0)
        first = graph_executor.GraphModule(lib["default"](device))
        second = graph_executor.create(lib.get_graph_json(), lib.get_lib(), device)
        second.share_params(first)
        for module, seed in ((first, 0), (second, 1)):
            module.set_input("image", image(seed))
            module.run()
            np.testing.assert_array_equal(module.get_output(0), wanted(lib, seed))
        spent = first.benchmark(device, repeat=2, number=3)
        assert min(spent.results) > 1e-6 and max(spent.results) < 5
        debug = debug_executor.create(lib.get_graph_json(), lib, device)
        debug.set_input("image", image())
        values = interpret(lib.plan.graph, {"image": image()})
        for name in ("stem", "depth", "logits"):
            np.testing.assert_array_equal(debug.debug_get_output(name), values[name])
        assert sum(map(sum, debug.run_individual(number=1))) > 0
        debug.exit()
        before = remote.board.welcome.library
        other = tvm.build(library().model, target="llvm")
        again = other["default"](device)  # another library: built and started anew
        again.run(image=DIGITS)
        np.testing.assert_array_equal(
            again.get_output(0),
            interpret(other.plan.graph, {"image": DIGITS})["scores"],
        )
        assert remote.board.welcome.library != before
        with pytest.raises(RemoteError, match=":mps2-an386: the board runs another"):
            first.run()
    with pytest.raises(RemoteError, match=r":mps2-an386: the session was closed$"):
        again.run()


def _runs_alike(
    module: graph_executor.GraphModule, lib: tvm.Library, number: int
) -> None:
    for _ in range(3):
        (scores,) = module.run_from_inputs(1, 0, "image", image(number))
        np.testing.assert_array_equal(scores, wanted(lib, number))


@pytest.mark.parametrize("kind", ["qemu", "unicorn"])
def test_two_threads_then_dropped(kind: str) -> None:
    """One module, one session; the simulator goes with the last that knows it."""
    lib = build()
    remote = rpc.connect(place(kind, "mps2-an386"), lib)
    module = graph_executor.GraphModule(lib["default"](remote.device(0)))

    in_threads(2, partial(_runs_alike, module, lib))
    line = remote.board.link.line
    if kind == "qemu":
        process, known = line._process, weakref.ref(line)
        assert process.poll() is None
    else:
        process, known = None, weakref.ref(line._machine)
    del line, remote, module
    gc.collect()
    assert known() is None
    assert process is None or process.poll() is not None


@pytest.mark.sweep
@pytest.mark.parametrize(
    "name",
    ["microbit", "stm32vldiscovery", "netduinoplus2", "riscv32-virt", "sifive-e",
     "mps2-an385", "mps2-an500", "mps2-an505", "mps2-an521", "mps3-an547"],
)  # fmt: skip
def test_every_board(name: str) -> None:
    lib = tvm.build(library().model, target="llvm")
    for kind in ("qemu", "unicorn"):
        if kind == "unicorn" and not load_board(name).core.unicorn:
            continue
        with rpc.connect(place(kind, name), lib) as remote:
            module = lib["default"](remote.device(0))
            module.run(image=DIGITS)
            np.testing.assert_array_equal(
                module.get_output(0),
                interpret(lib.plan.graph, {"image": DIGITS})["scores"],
            )
            assert module.benchmark(repeat=1, number=1).mean > 0


def test_bench_at_a_port(capsys: pytest.CaptureFixture[str]) -> None:
    from pybuild.cli import main

    where = place("unicorn", "mps2-an386")
    words = ["bench", str(MODEL), "--port", where, "--runs", "3"]
    assert main([*words, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["board"] == "mps2-an386" and len(facts["ticks"]) == facts["runs"] == 3
    assert all(spent > 0 for spent in facts["ticks"])
    assert facts["seconds"]["min"] <= facts["seconds"]["median"]
    layers = [name for stage in facts["stages"] for name in stage["layers"]]
    assert layers == ["conv", "depthwise", "pointwise", "pool", "scores"]
    assert main(words) == 0
    assert "us, of 3 runs" in capsys.readouterr().out
    assert main([*words, "--on", "mps2-an386"]) == 64
    assert main([*words, "--against", "litert"]) == 64
    assert "--against: cannot be combined with --port" in capsys.readouterr().err


def test_a_board_that_ends_is_an_error() -> None:
    lib = tvm.build(library().model, target="llvm")
    with rpc.connect(place("qemu", "mps2-an386"), lib) as remote:
        module = lib["default"](remote.device(0))
        os.killpg(remote.board.link.line._process.pid, signal.SIGKILL)
        with pytest.raises(RemoteError, match=r"^qemu:mps2-an386: .*"):
            module.run(image=DIGITS)


# ---- a real serial port, and TCP: the host's server behind them -----------------


@contextmanager
def served(host: Host, line: int) -> Iterator[None]:
    """A thread that is the board at the other end."""
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            there, _, _ = select.select([line], [], [], 0.02)
            if there:
                os.write(line, host.feed(os.read(line, 4096)))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def runs(where: str) -> None:
    lib = library()
    with rpc.connect(where, lib) as remote:
        module = lib["default"](remote.device(0))
        module.run(image=DIGITS)
        np.testing.assert_array_equal(
            module.get_output(0), interpret(lib.plan.graph, {"image": DIGITS})["scores"]
        )


def test_a_serial_port() -> None:
    require_module("serial")
    ours, theirs = pty.openpty()
    tty.setraw(ours)
    host = Host(library())
    with served(host, ours):
        runs(f"serial:{os.ttyname(theirs)},921600")
        runs(f"serial:{os.ttyname(theirs)}")


def test_a_check_at_a_serial_port(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A user's samples through the firmware at the end of the line."""
    from pybuild.cli import main
    from tests.rpc.lines import DIGITS as MODEL

    require_module("serial")
    ours, theirs = pty.openpty()
    tty.setraw(ours)
    images = np.random.default_rng(0).integers(-128, 128, (12, 1, 8, 8, 1), np.int8)
    labels = [int(library().host().run(image=one)["scores"].argmax()) for one in images]
    labels[4] = (labels[4] + 1) % 10
    np.savez(tmp_path / "own.npz", image=images, labels=np.array(labels))
    where = f"serial:{os.ttyname(theirs)},921600"
    words = ["check", str(MODEL), "--input", "keep", "--port", where, "--json"]
    with served(Host(library()), ours):
        assert main([*words, "--data", str(tmp_path / "own.npz")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["classes"]["right"] == {"reference": 11, where: 11}
    assert found["backends"][where]["mismatches"] == 0


def test_tcp() -> None:
    host = Host(library())
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            there, _ = server.accept()
            while data := there.recv(4096):
                there.sendall(host.feed(data))
            server.accept()[0].close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        where = f"tcp:127.0.0.1:{server.getsockname()[1]}"
        runs(where)
        with pytest.raises(RemoteError, match=f"^{where}: "):  # closed, or reset
            rpc.connect(where)
        thread.join()


# ---- what is wrong ----------------------------------------------------------------

FORMS = "Hint: give qemu:BOARD, unicorn:BOARD, serial:PORT,BAUD or tcp:HOST:PORT"
WRONG = {
    "mps2-an386": f"mps2-an386: is not a place of a board. {FORMS}",
    "usb:x": f"usb:x: is not a place of a board. {FORMS}",
    "serial:": f"serial:: is not a place of a board. {FORMS}",
    "serial:COM1,fast": f"serial:COM1,fast: 'fast' is not a number. {FORMS}",
    "tcp:here": f"tcp:here: '' is not a number. {FORMS}",
}


@pytest.mark.parametrize("where", WRONG)
def test_what_is_no_place(where: str) -> None:
    with pytest.raises(BuildError) as caught:
        rpc.connect(where)
    assert str(caught.value) == WRONG[where]


def test_a_port_that_is_not_there() -> None:
    require_module("serial")
    with pytest.raises(RemoteError, match=r"^serial:/dev/ttyNone: .*No such file"):
        rpc.connect("serial:/dev/ttyNone")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(
        RemoteError, match=f"^tcp:127.0.0.1:{port}: Connection refused$"
    ):
        rpc.connect(f"tcp:127.0.0.1:{port}")


def test_another_library_in_flash_is_an_error_with_the_command() -> None:
    """The board says that it is a microbit: its firmware is built, to be flashed."""
    require("arm-none-eabi-gcc")
    remote = board(library(), board="microbit")
    other = tvm.build(classifier("tiny").model(), target="llvm")
    with pytest.raises(BuildError) as caught:
        remote.serve(other)
    said = str(caught.value)
    was, now = (
        remote.board.welcome.library,
        said.partition("not '")[2].partition("'")[0],
    )
    opening = f"host: the board has the library '{was}', not '{now}'. Hint: flash it: "
    command = "openocd -f interface/cmsis-dap.cfg -f target/nrf51.cfg -c 'program "
    assert said.startswith(opening + command)
    assert said.endswith("/microbit.elf verify reset exit'")
    file = said.partition("'program ")[2].partition(" verify")[0]
    with open(file, "rb") as elf:
        assert elf.read(4) == b"\x7fELF"


def test_the_firmware_of_the_protocol_compiles(tmp_path: Path) -> None:
    """The C of docs/rpc-protocol.md, as it stands there, with a model named kws."""
    page = (ROOT / "docs" / "rpc-protocol.md").read_text()
    block, with_key = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    library().model.build(tmp_path, name="kws")
    (tmp_path / "firmware.c").write_text(block)
    content = f'-DKWS_CONTENT="{rpc.content_of(library())}"'
    flags = [*STRICT, content, "-I", tmp_path, "-I", INCLUDE]
    used = "const struct crt_rpc_key *used(void) { return &key; }\n"
    (tmp_path / "key.c").write_text(with_key + used)
    for name in ("firmware.c", "key.c"):
        run([require("gcc"), *flags, "-fsyntax-only", tmp_path / name])
