"""Reads held-out digits on a board and here, and says what the board's time went to.

python examples/remote/evaluate.py [PLACE] [PICTURES]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import pybuild
from pybuild import debug_executor, graph_executor, rpc

DIGITS = Path(__file__).resolve().parent.parent / "digits"


def main(place: str = "unicorn:mps2-an386", pictures: str = "30") -> int:
    test = np.load(DIGITS / "digits_test.npz")
    library = pybuild.build(DIGITS / "digits_int8.tflite", target="llvm")
    (tensor,) = library.report.inputs
    count, same, right = int(pictures), 0, 0
    with rpc.connect(place, library) as remote:
        device = remote.device(0)
        there = graph_executor.GraphModule(library["default"](device))
        here = graph_executor.GraphModule(library["default"](pybuild.cpu(0)))
        for picture, label in zip(
            test["images"][:count], test["labels"][:count], strict=True
        ):
            real = picture.astype(np.float32) / 16
            steps = np.rint(real / np.float32(tensor.scale)) + tensor.zero_point
            image = np.clip(steps, -128, 127).astype(np.int8).reshape(tensor.shape)
            there.run(image=image)
            here.run(image=image)
            scores = there.get_output("scores").numpy()
            same += np.array_equal(scores, here.get_output("scores"))
            right += int(scores.argmax() == label)
        print(f"{remote.board.welcome.library} on {place}")
        print(f"{right} of {count} read right, {same} with the bits of this machine")
        print(there.benchmark(device, repeat=3, number=5))
        text = library.get_graph_json()
        debug = debug_executor.create(text, library, device)
        debug.set_input("image", image)
        debug.run(number=3)
        debug.exit()
    return same != count


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
