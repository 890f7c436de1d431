"""Made frames of a camera, 160x120 in RGB565 as sensors send it: nothing, a ball, a box
or a cone of any colour before a background with noise.
"""

from __future__ import annotations

import numpy as np

WIDTH, HEIGHT = 160, 120
THINGS = ("nothing", "ball", "box", "cone")


def _thing(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Where it is: bool [HEIGHT, WIDTH], within the middle of 120 columns."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    size = rng.uniform(14, 30)
    row, column = rng.uniform(size, HEIGHT - size), rng.uniform(20 + size, 140 - size)
    down, across = (y - row) / size, (x - column) / size
    if kind == "ball":
        return down**2 + across**2 < 1
    if kind == "box":
        return np.maximum(abs(down), abs(across)) < 0.9
    return (abs(across) < (down + 1) / 2) & (down < 1)


def scene(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Colours from 0 to 1, [HEIGHT, WIDTH, 3]."""
    y, x = np.mgrid[:HEIGHT, :WIDTH] / HEIGHT - 0.5
    slopes, middle = rng.normal(0, 0.15, (2, 3)), rng.uniform(0.2, 0.8, 3)
    made = middle + y[..., None] * slopes[0] + x[..., None] * slopes[1]
    if kind != "nothing":
        colour = rng.uniform(0, 1, 3)
        while abs(colour - middle).sum() < 0.8:
            colour = rng.uniform(0, 1, 3)
        made = np.where(_thing(kind, rng)[..., None], colour, made)
    return np.clip(made + rng.normal(0, 0.06, made.shape), 0, 1)


def sent(colours: np.ndarray) -> np.ndarray:
    """The bytes that a sensor sends, the higher one first: uint8 [.., WIDTH, 2]."""
    r, g, b = np.moveaxis(np.rint(colours * (31, 63, 31)).astype(np.uint16), -1, 0)
    both = r << 11 | g << 5 | b
    return np.stack([both >> 8, both & 255], -1).astype(np.uint8)


def frames(each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """So many of each thing: uint8 [n, HEIGHT, WIDTH, 2], and what they show [n]."""
    rng = np.random.default_rng(seed)
    made = [(sent(scene(k, rng)), n) for n, k in enumerate(THINGS) for _ in range(each)]
    pictures, shown = zip(*made, strict=True)
    return np.stack(pictures), np.array(shown)
