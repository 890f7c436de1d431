"""examples/stories: a language model goes on telling what a line begins, by .pt2 and by
.onnx, in Python, on this machine and on boards: the same words everywhere.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import pybuild
from pybuild.boards.device import Device, open_device
from pybuild.boards.firmware.build import (
    Firmware,
    Group,
    build,
    model_groups,
    sorted_files,
    texts,
)
from pybuild.boards.simulators.qemu import machine_options
from pybuild.boards.simulators.simulator import must_succeed
from tests.toolchains import INCLUDE, ROOT, SANITIZE, SOURCES, STRICT, require, run

HERE = ROOT / "examples" / "stories"
C_FILES = [HERE / name for name in ("main.c", "sampler.c", "tokens.c")]
HEADERS = [HERE / f"{name}.h" for name in ("odds_table", "sampler", "tokens",
                                           "tokens_table")]  # fmt: skip
FLAGS = {"onnx": (), "pt2": ("-DLOGITS=stories_linear_35",)}
# prompt, tokens at most, temperature, seed
SHORT = (("Once upon a time", 12, 0, 1), ('Tom saw a "dog"', 9, 90, 5))
LONG = (*SHORT, ("", 256, 0, 1), ("One day", 256, 60, 9), ("q" * 300, 5, 0, 1),
        ("\x07~\xfcber \\", 30, 100, 0))  # fmt: skip
Board = Callable[[pybuild.Model, "Words"], str]
Words = tuple[tuple[str, int, int, int], ...]


@pytest.fixture(scope="module")
def told() -> Iterator[ModuleType]:
    """tell.py."""
    sys.path.insert(0, str(HERE))
    try:
        import tell

        yield tell
    finally:
        sys.path.remove(str(HERE))


@pytest.fixture(scope="module")
def models(told: ModuleType) -> dict[str, pybuild.Model]:
    return {kind: told.load(HERE / f"stories.{kind}") for kind in FLAGS}


@pytest.fixture(scope="module")
def built(models: dict[str, pybuild.Model]) -> dict[str, pybuild.Library]:
    """For any machine."""
    return {kind: model.build(name="stories") for kind, model in models.items()}


@pytest.fixture(scope="module")
def teller(told: ModuleType, built: dict[str, pybuild.Library]) -> object:
    return told.Teller(built["pt2"])


def lines(words: Words) -> bytes:
    """What is typed."""
    typed = [
        f"/n {most}\n/t {temperature}\n/s {seed}\n{prompt}\n"
        for prompt, most, temperature, seed in words
    ]
    return "".join(typed).encode() + b"\x04"


def wanted(teller: object, words: Words) -> str:
    """What is told, as Python does."""
    said = [teller.text(*one) for one in words]  # type: ignore[attr-defined]
    return "".join(f"{text}\n" for text in said)


def on_this_machine(library: pybuild.Library, kind: str, folder: Path) -> Path:
    for name, text in library.sources().items():
        (folder / name).write_text(str(text))
    made = [HERE / "port_host.c", *C_FILES, *SOURCES, *folder.glob("stories*.c")]
    flags = [*STRICT, "-ffp-contract=off", *SANITIZE["gcc"], *FLAGS[kind]]
    include = ["-I", folder, "-I", INCLUDE, "-I", HERE]
    program = folder / "stories"
    run([require("gcc"), *flags, *include, *made, "-lm", "-o", program])
    return program


def firmware(model: pybuild.Model, device: Device) -> Firmware:
    library = model.build(name="stories", target=device.core.name)
    sources, headers, objects = sorted_files(library.sources())
    groups = [*model_groups(sources), Group("main", texts(C_FILES), FLAGS["pt2"])]
    return build(library, device.board, device.toolchain, device.core, "balanced",
                 groups, {**headers, **texts(HEADERS)}, objects)  # fmt: skip


def over_a_uart(model: pybuild.Model, words: Words) -> str:
    """What a Cortex-M4 says on its UART, in QEMU."""
    device = open_device("mps2-an386", simulator="qemu")
    program = firmware(model, device)
    command = [require("qemu-system-arm"), *machine_options(device.board)]
    done = subprocess.run([*command, "-kernel", str(program.path)], input=lines(words),
                          capture_output=True, timeout=300, check=True)  # fmt: skip
    return done.stdout.decode(errors="replace")


def over_a_debugger(model: pybuild.Model, words: Words) -> str:
    """What the core of a Pico 2 says by semihosting, in Unicorn."""
    device = open_device("pico2", simulator="unicorn")
    program = firmware(model, device)
    outcome = device.simulator.run(program, {":tt": lines(words)})
    return must_succeed(outcome, program).console


@pytest.mark.parametrize("kind", FLAGS)
def test_this_machine_tells_what_python_does(
    kind: str, built: dict[str, pybuild.Library], teller: object, tmp_path: Path
) -> None:
    program = on_this_machine(built[kind], kind, tmp_path)
    done = subprocess.run([program], input=lines(LONG[:3]), capture_output=True,
                          timeout=120, check=True)  # fmt: skip
    assert done.stdout.decode() == wanted(teller, LONG[:3])


def test_both_files_give_the_same_tokens(
    told: ModuleType, built: dict[str, pybuild.Library], teller: object
) -> None:
    other = told.Teller(built["onnx"])
    assert wanted(other, LONG) == wanted(teller, LONG)


@pytest.mark.parametrize("board", [over_a_uart, over_a_debugger])
def test_boards_tell_what_python_does(
    board: Board, models: dict[str, pybuild.Model], teller: object
) -> None:
    assert board(models["pt2"], SHORT) == wanted(teller, SHORT)


@pytest.mark.sweep
@pytest.mark.parametrize("board", [over_a_uart, over_a_debugger])
def test_whole_stories_on_boards(
    board: Board, models: dict[str, pybuild.Model], teller: object
) -> None:
    assert board(models["pt2"], LONG) == wanted(teller, LONG)


def test_caches_are_written_where_they_lie(built: dict[str, pybuild.Library]) -> None:
    """Five layers, keys and values, 4 heads, 256 positions of 8 int8; attention
    reads the rows so far."""
    cache = 5 * 2 * 4 * 256 * 8
    for library in built.values():
        assert library.plan.arena_bytes <= 1.04 * cache
        ops = [step.node.op for step in library.plan.steps]
        assert not {"assign", "copy", "transpose"} & set(ops)
        assert (ops.count("dense_sums"), ops.count("attention")) == (36, 5)


def test_it_has_learnt(teller: object) -> None:
    """Stories that it has not seen: the mean logarithm of the odds of a token."""
    import corpus
    from tokens import BEGIN, encode, read_pairs

    losses, step = [], teller.step  # type: ignore[attr-defined]
    for text in corpus.stories(8200, 1)[-3:]:
        tokens = [BEGIN, *encode(text.encode(), read_pairs()), BEGIN]
        for at, token in enumerate(tokens[:-1]):
            logits = step(token, at).ravel().astype(float)
            odds = logits - logits.max()
            losses.append(np.log(np.exp(odds).sum()) - odds[tokens[at + 1]])
    assert np.mean(losses) < 0.25
