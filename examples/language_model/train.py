"""Trains the language model on corpus.txt and writes the files beside this script.

Needs numpy only; truncated backpropagation through time, Adam, seeded. The corpus is
this project's own documentation; the last tenth is held out.
"""

from __future__ import annotations

import textwrap

import network
import numpy as np
import text
from network import HIDDEN, WORDS

from pybuild.frontends import graphjson

SEED = 11
STEPS, ROWS, EPOCHS = 16, 32, 60
RATE, DECAY, CLIP = 4e-3, 2e-4, 1.0

Floats = np.ndarray
Weights = dict[str, Floats]


def fresh(chance: np.random.Generator) -> Weights:
    def normal(*shape: int) -> Floats:
        return (chance.normal(0, shape[-1] ** -0.5, shape)).astype(np.float32)

    return {
        "embedding": normal(WORDS, HIDDEN), "wx": normal(HIDDEN, HIDDEN),
        "wh": normal(HIDDEN, HIDDEN) * np.float32(0.7),
        "b": np.zeros(HIDDEN, np.float32), "c": np.zeros(WORDS, np.float32),
    }  # fmt: skip


def loss_and_slopes(
    w: Weights, words: Floats, h: Floats
) -> tuple[float, Weights, Floats]:
    """Mean cross entropy of the next words, its gradient, and the last state.

    Shapes  words [STEPS + 1, rows], h [rows, HIDDEN]
    """
    states, slopes = [h], {name: np.zeros_like(value) for name, value in w.items()}
    for row in words[:-1]:
        x = w["embedding"][row]
        states.append(np.tanh(x @ w["wx"].T + states[-1] @ w["wh"].T + w["b"]))
    carried, loss = np.zeros_like(h), 0.0
    scale = np.float32(1 / words[1:].size)
    for t in reversed(range(len(words) - 1)):
        here = states[t + 1]
        scores = here @ w["embedding"].T + w["c"]
        scores -= scores.max(1, keepdims=True)
        chances = np.exp(scores)
        chances /= chances.sum(1, keepdims=True)
        at = (np.arange(len(here)), words[t + 1])
        loss -= float(np.log(chances[at] + 1e-30).sum() * scale)
        chances[at] -= 1
        chances *= scale
        slopes["embedding"] += chances.T @ here
        slopes["c"] += chances.sum(0)
        inner = (chances @ w["embedding"] + carried) * (1 - here**2)
        slopes["b"] += inner.sum(0)
        slopes["wh"] += inner.T @ states[t]
        slopes["wx"] += inner.T @ w["embedding"][words[t]]
        np.add.at(slopes["embedding"], words[t], inner @ w["wx"])
        carried = inner @ w["wh"]
    return loss, slopes, states[-1]


def trained(words: Floats) -> Weights:
    chance = np.random.default_rng(SEED)
    w = fresh(chance)
    mean = {n: np.zeros_like(v) for n, v in w.items()}
    square = {n: np.zeros_like(v) for n, v in w.items()}
    length = len(words) // ROWS
    lanes = words[: length * ROWS].reshape(ROWS, length).T
    turn = 0
    for epoch in range(EPOCHS):
        h = np.zeros((ROWS, HIDDEN), np.float32)
        first = int(chance.integers(STEPS))
        for at in range(first, length - STEPS - 1, STEPS):
            _, slopes, h = loss_and_slopes(w, lanes[at : at + STEPS + 1], h)
            turn += 1
            norm = np.sqrt(sum(float((s**2).sum()) for s in slopes.values()))
            rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
            for name, slope in slopes.items():
                slope = slope * min(1.0, CLIP / norm) + DECAY * w[name]
                mean[name] += 0.1 * (slope - mean[name])
                square[name] += 0.01 * (slope**2 - square[name])
                m = mean[name] / (1 - 0.9**turn)
                s = square[name] / (1 - 0.99**turn)
                w[name] -= (rate * m / (np.sqrt(s) + 1e-8)).astype(np.float32)
    return w


def perplexity(w: Weights, words: Floats) -> float:
    """exp of the mean cross entropy: among how many words it seems to choose."""
    h = np.zeros((1, HIDDEN), np.float32)
    loss, _, _ = loss_and_slopes(w, words[:, None], h)
    return float(np.exp(loss))


def unigram_perplexity(words: Floats, held_out: Floats) -> float:
    """The same of a model that knows only how frequent each word is."""
    counts = np.bincount(words, minlength=WORDS) + 1.0
    chances = counts / counts.sum()
    return float(np.exp(-np.log(chances[held_out[1:]]).mean()))


def header(vocabulary: list[str]) -> str:
    """vocabulary.h: the words for main.c."""
    quoted = [w.replace("\\", "\\\\").replace('"', '\\"') for w in vocabulary]
    list_ = " ".join(f'"{word}",' for word in quoted)
    rows = textwrap.fill(list_, 76, initial_indent="    ", subsequent_indent="    ")
    return f"""\
/* vocabulary.h: written by train.py; the words by their numbers. */
#ifndef VOCABULARY_H
#define VOCABULARY_H

/* clang-format off */
static const char *const vocabulary[{len(vocabulary)}] = {{
{rows}
}};
/* clang-format on */

#endif
"""


def main() -> None:
    every = text.split(text.CORPUS.read_text(encoding="utf-8"))
    cut = len(every) * 9 // 10
    vocabulary = text.vocabulary_of(every[:cut], WORDS)
    found = np.array(text.numbers(every, vocabulary))
    w = trained(found[:cut])
    text.VOCABULARY.write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    (text.HERE / "vocabulary.h").write_text(header(vocabulary), encoding="utf-8")
    for graph in (network.recurrent(w), network.output(w)):
        written, params = graphjson.dump(graph)
        (text.HERE / f"{graph.name}.json").write_text(written, encoding="utf-8")
        (text.HERE / f"{graph.name}.params").write_bytes(params)
    print(f"{len(every)} words, {len(vocabulary)} known")
    print(f"held out: perplexity {perplexity(w, found[cut:]):.1f}", end="")
    alone = unigram_perplexity(found[:cut], found[cut:])
    print(f", of word frequencies alone {alone:.1f}")


if __name__ == "__main__":
    main()
