"""Frames in, things out: python watch.py [--on BOARD]

How many of `--each` made frames of every thing are seen as what they are: with the
network in float, in int8 by numpy, and in int8 on a simulated board, line by line.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scene import frames

import pybuild
from pybuild.boards.device import open_device, program_of, run_program
from pybuild.features import Images
from pybuild.front import Chain, read_front

HERE = Path(__file__).parent
BOARD, TARGET, SEED = "mps2-an386", "cortex-m4", 77


def pictures() -> Images:
    found = read_front(HERE / "front.toml").features
    assert isinstance(found, Images)
    return found


def chains() -> tuple[Chain, Chain]:
    """The network in float, and in int8; what a network is normalised by is in the
    weights of its first layer."""
    model = pybuild.load(HERE / "camera.onnx")
    camera = pictures()
    folded = pybuild.normalised(model, camera.mean, camera.std)
    image = np.load(HERE / "calibration.npz")["image"].astype(np.float32) / 255
    made = pybuild.quantise(folded, {"image": image}, boundary="int8")
    return pybuild.chain(camera, model), pybuild.chain(camera.plain, made)


def built(chain: Chain, target: str = TARGET) -> pybuild.Library:
    return pybuild.build(chain, name="camera", target=target, push="lines")


class Board:
    """The program, and a simulated board; lines are pushed as they come."""

    def __init__(self, chain: Chain, board: str = BOARD) -> None:
        self.device = open_device(board, "auto", "auto", TARGET)
        self.program = program_of(self.device, built(chain))

    def __call__(self, given: np.ndarray) -> np.ndarray:
        """Scores of each frame."""
        made = run_program(
            self.device, self.program, [{"lines": f[None]} for f in given]
        )
        return np.stack([one["scores"] for one in made])


class Compiled:
    """As the chain itself, with the same bits, but compiled for this machine."""

    def __init__(self, chain: Chain) -> None:
        self.net = built(chain, "generic").host()

    def __call__(self, given: np.ndarray) -> np.ndarray:
        made = []
        for frame in given:
            for line in frame:
                self.net.push_rows("lines", line[None])
            made.append(self.net.get_output("scores"))
        return np.stack(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", default=None, metavar="BOARD", help=f"such as {BOARD}")
    parser.add_argument("--each", type=int, default=50, help="frames of a thing")
    args = parser.parse_args()
    real, whole = chains()
    given, shown = frames(args.each, SEED)
    for name, chain in (("float", real), ("int8", whole)):
        right = Compiled(chain)(given).reshape(len(shown), -1).argmax(1) == shown
        print(f"{name}: {right.sum()} of {len(shown)} frames right")
    if args.on:
        made, twin = Board(whole, args.on)(given), whole(given)["scores"]
        alike = (made == twin).reshape(len(shown), -1).all(1).sum()
        right = (made.reshape(len(shown), -1).argmax(1) == shown).sum()
        print(f"on {args.on}: {right} of {len(shown)} right, bits of {alike} equal")


if __name__ == "__main__":
    main()
