"""The language model: by numpy, and as graphs for pybuild.

    x[t] = E[word[t]]    h[t+1] = tanh(x[t] Wx' + h[t] Wh' + b)    logits = h E' + c

The rows of E are the words going in and, as the output layer's weights, coming out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import pybuild
from pybuild.ir.graph import Graph

Floats = np.ndarray
Weights = Mapping[str, Floats]
WORDS, HIDDEN = 512, 48


def step(weights: Weights, word: int, h: Floats) -> Floats:
    """The state after one more word.

    Shapes  h [1, HIDDEN]
    """
    x = weights["embedding"][word]
    return np.tanh(x @ weights["wx"].T + h @ weights["wh"].T + weights["b"])


def logits(weights: Weights, h: Floats) -> Floats:
    """How likely each word comes next, before softmax: [1, WORDS]."""
    return h @ weights["embedding"].T + weights["c"]


def recurrent(weights: Weights) -> Graph:
    """x, h -> next. Neither input has memory of its own: both are bound."""
    b = pybuild.GraphBuilder("recurrent")
    x = b.input("x", (1, HIDDEN), lazy=True)
    h = b.input("h", (1, HIDDEN), lazy=True)
    b.output(_cell(b, weights, x, h, ""), "next")
    return b.build()


def output(weights: Weights) -> Graph:
    """h -> logits. The embedding is a parameter, so that others can read it."""
    b = pybuild.GraphBuilder("output")
    h = b.input("h", (1, HIDDEN), lazy=True)
    embedding = b.parameter("embedding", weights["embedding"])
    b.output(b.op("dense", h, embedding, b.constant("c", weights["c"])), "logits")
    return b.build()


def monolithic(weights: Weights, steps: int) -> Graph:
    """The same as one graph of so many steps: rows of E in, all logits out."""
    b = pybuild.GraphBuilder("monolithic")
    x = b.input("x", (steps, HIDDEN))
    h = b.input("h", (1, HIDDEN))
    wh = b.constant("wh", weights["wh"])
    inward = b.op("dense", x, b.constant("wx", weights["wx"]),
                  b.constant("b", weights["b"]), name="inward")  # fmt: skip
    states = []
    for t in range(steps):
        row = b.op("slice", inward, begin=(t, 0), end=(t + 1, HIDDEN), strides=(1, 1))
        h = b.op("tanh", b.op("add", row, b.op("dense", h, wh)))
        states.append(h)
    whole = b.op("concat", *states, axis=0)
    embedding = b.constant("embedding", weights["embedding"])
    b.output(b.op("dense", whole, embedding, b.constant("c", weights["c"])), "logits")
    return b.build()


def _cell(
    b: pybuild.GraphBuilder, weights: Weights, x: object, h: object, tail: str
) -> object:
    inward = b.op("dense", x, b.constant("wx", weights["wx"]),
                  b.constant("b", weights["b"]), name="inward")  # fmt: skip
    again = b.op("dense", h, b.constant("wh", weights["wh"]), name="again")
    return b.op("tanh", b.op("add", inward, again, name="sum"), name="state")


def greedy(weights: Weights, words: Sequence[int], count: int) -> list[int]:
    """The likeliest words to follow, by numpy alone."""
    h, said = np.zeros((1, HIDDEN), np.float32), []
    for word in words:
        h = step(weights, word, h)
    for _ in range(count):
        said.append(1 + int(logits(weights, h)[0, 1:].argmax()))
        h = step(weights, said[-1], h)
    return said
