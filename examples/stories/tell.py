"""Goes on telling the story that a prompt begins: what main.c does, from Python.

python tell.py "One day, Tom" [TEMPERATURE [SEED [MODEL]]]

TEMPERATURE in hundredths, 0: always the likeliest token; MODEL: stories.pt2 or
stories.onnx
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
sys.path.insert(0, str(HERE))

from sampler import Sampler  # noqa: E402
from tokens import BEGIN, decode, encode, read_pairs  # noqa: E402

import pybuild  # noqa: E402

WINDOW = 256
MODEL = HERE / "stories.pt2"
DEFAULTS = ["Once upon a time", "0", "1", str(MODEL)]


def load(path: Path = MODEL) -> pybuild.Model:
    """The model with int8 weights that are computed in int8; caches are state."""
    state = "auto" if path.suffix == ".onnx" else None
    return pybuild.load(path, state=state, hybrid="int8")


class Teller:
    def __init__(self, library: pybuild.Library, backend: str = "llvm") -> None:
        self.net, self.pairs = library.host(backend), read_pairs()

    def step(self, token: int, at: int) -> np.ndarray:
        made = self.net.run(token=np.array([token]), at=np.array([at]))
        (logits,) = made.values()
        return logits

    def tokens(self, prompt: str, most: int = WINDOW, temperature: int = 0,
               seed: int = 1) -> Iterator[int]:  # fmt: skip
        """Those of the prompt, then at most so many that follow."""
        known = encode(prompt.encode()[: WINDOW - 1], self.pairs)
        chance, token = Sampler(seed, temperature), BEGIN
        for at in range(min(WINDOW, len(known) + most)):
            logits = self.step(token, at)
            token = known[at] if at < len(known) else chance.next(logits)
            if token == BEGIN:
                return
            yield token

    def text(self, prompt: str, most: int = WINDOW, temperature: int = 0,
             seed: int = 1) -> str:  # fmt: skip
        tokens = self.tokens(prompt, most, temperature, seed)
        return b"".join(decode(t, self.pairs) for t in tokens).decode(errors="replace")


def main() -> None:
    given = sys.argv[1:]
    prompt, temperature, seed, path = [*given, *DEFAULTS[len(given) :]]
    teller = Teller(load(Path(path)).build())
    print(teller.text(prompt, WINDOW, int(temperature), int(seed)))


if __name__ == "__main__":
    main()
