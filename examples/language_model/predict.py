"""The same as main.c from Python: the two halves through pybuild, sharing one matrix.

python predict.py the arena is
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
sys.path.insert(0, str(HERE))

import text  # noqa: E402

import pybuild  # noqa: E402

SAID = 12


class LanguageModel:
    """State and words; every word is a row of what the output layer reads."""

    def __init__(self, backend: str = "llvm") -> None:
        self.recurrent = _built("recurrent").host(backend)
        library = _built("output")
        self.output = library.host(backend)
        image = library.weights.image
        at = self.output.parameter_address("embedding") - image.ctypes.data
        shape = library.model.graph.tensor("embedding").shape
        size = 4 * shape[0] * shape[1]
        self.embedding = image[at : at + size].view(np.float32).reshape(shape)
        self.states = [np.zeros((1, shape[1]), np.float32) for _ in range(2)]
        self.now = 0

    def hear(self, word: int) -> None:
        """One more word: bound, not copied, as the two states are."""
        self.recurrent.bind_input("x", self.embedding[word : word + 1])
        self.recurrent.bind_input("h", self.states[self.now])
        self.now = 1 - self.now
        self.recurrent.bind_output("next", self.states[self.now])
        self.recurrent.run()

    def say(self) -> int:
        """The likeliest word to follow; 0, any that it does not know, is never said."""
        self.output.bind_input("h", self.states[self.now])
        self.output.run()
        return 1 + int(self.output.get_output("logits")[0, 1:].argmax())


def _built(name: str) -> pybuild.Library:
    return pybuild.load(HERE / f"{name}.json").build(name=name)


def continued(words: Sequence[str], backend: str = "llvm") -> list[str]:
    """The words that follow."""
    vocabulary = text.read_vocabulary()
    model, said = LanguageModel(backend), []
    for word in text.numbers([w.lower() for w in words], vocabulary):
        model.hear(word)
    for _ in range(SAID):
        said.append(model.say())
        model.hear(said[-1])
    return [vocabulary[word] for word in said]


if __name__ == "__main__":
    print(" ".join(continued(sys.argv[1:])))
