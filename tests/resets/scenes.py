"""What a device does when its power fails: programs of this folder, what they must come
to after a reset at each of their writes, and how often they come to what."""

from __future__ import annotations

import random
import struct
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from unicorn import UcError

import pybuild
from pybuild.image import build_image
from tests.resets.device import GIVEN, HERE, Device, Life, Memory, Outside, linked
from tests.snippets import snippets
from tests.toolchains import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
STREAM = ROOT / "examples" / "streams" / "gru.onnx"
PAGE = ROOT / "docs" / "streams.md"
CORE = "cortex-m4"
_INT8 = 2  # of crt/types.h
RAM = ("cleared", "kept", "random")
# what comes of a reset; the last ones are failures
NEW, BEFORE, ANEW, REFUSED = "new", "before", "anew", "refused"
WRONG, HUNG, LED_OUT = "wrong", "hung", "outside"
KINDS = (NEW, BEFORE, ANEW, REFUSED, WRONG, HUNG, LED_OUT)


class Scene(ABC):
    """A program on a device.

    lives  of its calls, one after the other: what each has written
    """

    def __init__(self, image: Path) -> None:
        self.device = Device(image)
        self.chance = random.Random(24)
        self.lives: list[Life] = []
        self.start(Memory(bytes(self.device.ram[1]), bytes(self.device.kept[1])))

    def start(self, memory: Memory) -> None:
        self.device.start(memory, self.chance)

    @property
    def writes(self) -> int:
        return sum(len(life.writes) for life in self.lives)

    @abstractmethod
    def after(self, index: int) -> str:
        """What comes of a start, after a reset in the life of that number."""

    def cuts(self, every: int) -> Iterator[tuple[int, Memory]]:
        """Memory after writes: none and all of each life, and each so many-th."""
        for index, life in enumerate(self.lives):
            end = len(life.writes)
            counts = sorted({*range(self.chance.randrange(every), end, every), 0, end})
            for _, memory in self.device.cut(life, counts):
                yield index, memory

    def reset(self, index: int, memory: Memory, ram: str) -> str:
        """What comes of a reset, by what RAM then holds."""
        size = self.device.ram[1]
        if ram == "cleared":
            memory = Memory(bytes(size), memory.kept)
        elif ram == "random":
            memory = Memory(self.chance.randbytes(size), memory.kept)
        self.start(memory)
        try:
            return self.after(index)
        except TimeoutError:
            return HUNG
        except (Outside, UcError):
            return LED_OUT

    def counted(self, every: int = 1, rams: Sequence[str] = RAM) -> Counter[str]:
        """How often resets come to what."""
        found = ((i, m) for i, m in self.cuts(every))
        return Counter(self.reset(i, m, ram) for i, m in found for ram in rams)


class Stream(Scene):
    """A recurrent network that saves its state after each frame."""

    FRAMES, WIDTH, SCORES = 6, 8, 16

    def __init__(self, folder: Path, *flags: str) -> None:
        model = pybuild.load(STREAM, state={"h": "h_next"})
        built = model.build(folder, name="net", target=CORE)
        (page,) = (s for s in snippets(ROOT, PAGE) if s.said("run by"))
        slots = page.text.replace("gru", "net").replace("GRU", "NET")
        (folder / "slots.h").write_text(slots)
        super().__init__(linked(folder, HERE / "stream.c", *flags))
        self.size = built.tables.state_bytes
        rng = np.random.default_rng(1)
        frames = rng.normal(0, 1, (self.FRAMES + 1, self.WIDTH)).astype(np.float32)
        self.device.give(frames.tobytes())
        self._live()

    def _live(self) -> None:
        """Two lives of three frames, the second with the RAM of the first, and one
        frame more: of each, the state and what was answered."""
        device, self.scores = self.device, [b""]
        self.begun: list[int] = []  # frames that are done when a call begins
        for life in range(2):
            first = 3 * life
            self._call(first, "boot")
            if not life:
                self.states = [self._state()]
            for number in range(first, first + 3):
                self._call(number, "frame", GIVEN + 4 * self.WIDTH * number)
                self.states.append(self._state())
                self.scores.append(device.read(device.calls("scores"), self.SCORES))
        assert device.calls("frame", GIVEN + 4 * self.WIDTH * self.FRAMES) == 0
        self.states.append(self._state())
        self.scores.append(device.read(device.calls("scores"), self.SCORES))
        assert len({*self.states}) == len({*self.scores}) == self.FRAMES + 2

    def _call(self, begun: int, *call: str | int) -> None:
        self.begun.append(begun)
        self.lives.append(self.device.lived(*call))

    def _state(self) -> bytes:
        return self.device.read(self.device.calls("state"), self.size)

    def after(self, index: int) -> str:
        if self.device.calls("boot") != 0:
            return REFUSED
        state, begun = self._state(), self.begun[index]
        if state not in self.states:
            return WRONG
        done = self.states.index(state)
        if self.device.calls("frame", GIVEN + 4 * self.WIDTH * done) != 0:
            return REFUSED
        answer = self.device.read(self.device.calls("scores"), self.SCORES)
        if (answer, self._state()) != (self.scores[done + 1], self.states[done + 1]):
            return WRONG
        if done not in (0, begun, begun + 1):
            return WRONG
        return {begun + 1: NEW, begun: BEFORE}.get(done, ANEW)

    def chained(self, resets: int) -> int:
        """Reset after reset, RAM as it was: how many frames were done in all.

        Errors  AssertionError where one that was done is lost, or done otherwise
        """
        device, done, total = self.device, 0, 0
        self.start(Memory(bytes(device.ram[1]), bytes(device.kept[1])))
        for number in range(resets):
            call: list[str | int] = ["boot"]
            if number % 3:
                assert device.calls("boot") == 0
                found = self.states.index(self._state())
                assert found in (done, done + 1)
                total += found - done
                done = found
                if done == self.FRAMES:
                    done, memory = 0, device.memory()
                    self.start(Memory(memory.ram, bytes(len(memory.kept))))
                    continue
                call = ["frame", GIVEN + 4 * self.WIDTH * done]
            life = device.lived(*call)
            most = len(life.writes)  # each other call comes to its end
            self.start(device.after(life, min(most, self.chance.randrange(2 * most))))
        return total


class Digits(Scene):
    """A network that takes images; what outlives resets decides nothing.

    images  how many a program takes at once, which has the answers of all
    """

    images = 1

    def __init__(self, image: Path) -> None:
        super().__init__(image)
        self.given = [
            bytes((i * 37 + 11 * j) % 256 for i in range(64))
            for j in range(self.images)
        ]
        self.device.give(b"".join(self.given))
        self._live()

    def _live(self) -> None:
        for _ in range(2):
            self.lives += [self.device.lived("boot")]
            self.lives += [self.device.lived("infer", GIVEN) for _ in range(2)]
        self.right = self.answer()
        net = pybuild.load(DIGITS).build().host("llvm")
        shaped = [np.frombuffer(one, np.int8).reshape(1, 8, 8, 1) for one in self.given]
        assert self.right == b"".join(net(image=x)["scores"].tobytes() for x in shaped)

    def answer(self) -> bytes:
        return self.device.read(self.device.calls("scores"), 10 * self.images)

    def after(self, index: int) -> str:
        """Twice: the second run must not live on what the first was given."""
        for call in (["boot"], ["infer", GIVEN], ["infer", GIVEN]):
            if self.device.calls(*call) != 0:
                return REFUSED
        return NEW if self.answer() == self.right else WRONG


class Rows(Digits):
    """Rows are pushed, weights unpacked."""

    def __init__(self, folder: Path) -> None:
        model = pybuild.load(DIGITS)
        model.build(folder, name="net", target=CORE, push=["image"], compress="lz4")
        super().__init__(linked(folder, HERE / "rows.c"))


class Turns(Digits):
    """Two networks use one memory in turn."""

    images = 2

    def __init__(self, folder: Path, *flags: str) -> None:
        models = {name: pybuild.load(DIGITS) for name in ("small", "large")}
        build_image(
            models, folder, name="duo", target=CORE, exclusive=[("small", "large")]
        )
        super().__init__(linked(folder, HERE / "turns.c", *flags))


class Weights(Digits):
    """Weights are loaded by one instance and shared by another; newer ones come.

    write  how: update, in flash that is erased first, or overwrite
    """

    def __init__(self, folder: Path, write: str) -> None:
        self.write = write
        model = pybuild.load(DIGITS)
        model.build(folder, name="net", target=CORE, params="replaceable")
        super().__init__(linked(folder, HERE / "weights.c"))

    def _live(self) -> None:
        """The factory's weights, then two newer images, one over the other. The answers
        that may come after each call, the best first."""
        device = self.device
        image = device.read(device.calls("factory"), device.kept[1])
        newer = device.give(b"".join(self.given), *map(other, (image,) * 2, (1, 2)))[1:]
        self.lives += [device.lived("boot"), device.lived("infer", GIVEN)]
        self.answers = [self.answer()]
        self.may = [(0, 0), (0, 0)]
        for number, at in enumerate(newer):
            self.lives += [device.lived(self.write, at)]
            self.lives += [device.lived("boot"), device.lived("infer", GIVEN)]
            self.answers.append(self.answer())
            self.may += [(number + 1, number), *[(number + 1, number + 1)] * 2]
        assert len({*self.answers}) == 3

    def after(self, index: int) -> str:
        for call in (["boot"], ["infer", GIVEN]):
            if self.device.calls(*call) != 0:
                return REFUSED
        found = self.answer()
        if found not in self.answers:
            return WRONG
        new, before = self.may[index]
        which = self.answers.index(found)
        if which not in (new, before, 0):
            return WRONG
        return {before: BEFORE, new: NEW}.get(which, ANEW)


def other(image: bytes, change: int) -> bytes:
    """An image with other weights: a bit in each byte of int8 that is in it."""
    made, count = bytearray(image), int.from_bytes(image[16:20], "little")
    for at in range(40, 40 + 40 * count, 40):
        data, stored = struct.unpack_from("<II", image, at + 20)
        if image[at + 6] == _INT8:
            for i in range(data, data + stored):
                made[i] ^= change
    made[4:8] = zlib.crc32(made[8:]).to_bytes(4, "little")
    return bytes(made)


# name in the table -> the scene in a folder, and of how many writes one is cut
SCENES: dict[str, tuple[Callable[[Path], Scene], int]] = {
    "state, saved to two slots in turn": (Stream, 1),
    "state, to two pages of flash": (lambda at: Stream(at, "-DIN_FLASH"), 1),
    "state, to one slot": (lambda at: Stream(at, "-DONE_SLOT"), 1),
    "weights that are replaced in flash": (lambda at: Weights(at, "update"), 7),
    "weights that are written over": (lambda at: Weights(at, "overwrite"), 7),
    "rows that are pushed, weights unpacked": (Rows, 7),
    "models of an image, in turn": (Turns, 7),
    "models in turn, by hand": (lambda at: Turns(at, "-DBY_HAND"), 7),
}
