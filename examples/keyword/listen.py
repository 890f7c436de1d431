"""WAV in, words out: python listen.py FILE.wav... [--on BOARD]

Without files, how many of `--each` recordings of every word are heard as what they are:
with the network in float, in int8 by numpy, and in int8 on a simulated board.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from sounds import WORDS, read_wav, recordings

import pybuild
from pybuild.boards.device import open_device, program_of, run_program
from pybuild.front import Chain, read_front, with_front

HERE = Path(__file__).parent
BOARD, TARGET, SEED = "mps2-an386", "cortex-m4", 99


def chains(stream: bool = True) -> tuple[Chain, Chain]:
    """The network in float, and in int8; stream: as front.toml says."""
    front = replace(read_front(HERE / "front.toml"), stream=stream)
    model = pybuild.load(HERE / "keyword.onnx")
    made = pybuild.quantise(model, HERE / "calibration.npz", boundary="int8")
    return Chain(with_front(model, front)), Chain(with_front(made.model, front))


def library(chain: Chain) -> pybuild.Library:
    return pybuild.build(chain, name="keyword", target=TARGET)


class Board:
    """The program, and a simulated board; samples go in by semihosting."""

    def __init__(self, chain: Chain, board: str = BOARD) -> None:
        self.samples = chain.samples
        self.device = open_device(board, "auto", "auto", TARGET)
        self.program = program_of(self.device, library(chain))

    def __call__(self, samples: np.ndarray) -> dict[str, np.ndarray]:
        """All outputs, run after run, as a Chain gives them."""
        parts = samples[: len(samples) // self.samples * self.samples]
        given = [{"samples": part} for part in parts.reshape(-1, self.samples)]
        made = run_program(self.device, self.program, given)
        return {name: np.stack([one[name] for one in made]) for name in made[0]}


def words_of(outputs: dict[str, np.ndarray]) -> list[str]:
    """Those that were heard, in order."""
    return [WORDS[n] for n in outputs["heard"].reshape(-1) if n >= 0]


def right(outputs: dict[str, np.ndarray], word: int) -> bool:
    return words_of(outputs) == ([WORDS[word]] if word else [])


class Compiled:
    """As the chain itself, with the same bits, but compiled for this machine."""

    def __init__(self, chain: Chain) -> None:
        self.samples = chain.samples
        self.net = pybuild.build(chain, name="keyword").host()

    def __call__(self, samples: np.ndarray) -> dict[str, np.ndarray]:
        self.net.reset()
        parts = samples[: len(samples) // self.samples * self.samples]
        made = [self.net.run(samples=part) for part in parts.reshape(-1, self.samples)]
        return {name: np.stack([one[name] for one in made]) for name in made[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE.wav")
    parser.add_argument("--on", default=None, metavar="BOARD", help=f"such as {BOARD}")
    parser.add_argument("--each", type=int, default=20, help="recordings of a word")
    args = parser.parse_args()
    real, whole = chains()
    board = Board(whole, args.on) if args.on else None
    listen = board or Compiled(whole)
    for file in args.files:
        found = words_of(listen(read_wav(file)))
        print(f"{file}: {' '.join(found) or 'nothing'}")
    if args.files:
        return
    samples, words, _ = recordings(args.each, SEED)
    for name, chain in (("float", real), ("int8", whole)):
        made = map(Compiled(chain), samples)
        count = sum(right(one, word) for one, word in zip(made, words, strict=True))
        print(f"{name}: {count} of {len(words)} recordings right")
    if board is not None:
        every = [board(one) for one in samples]
        count = sum(right(one, w) for one, w in zip(every, words, strict=True))
        alike = sum(
            all((one[n] == twin[n]).all() for n in twin)
            for one, twin in zip(every, map(whole, samples), strict=True)
        )
        print(f"on {args.on}: {count} of {len(words)} right, bits of {alike} equal")


if __name__ == "__main__":
    main()
