"""Recordings of seven words in noise: four that a machine can make (a low and a high
tone, a rising and a falling one), three that espeak-ng spoke; and WAV files of them.

spoken.npz has voices that no training has heard, so nothing needs espeak-ng but that.
"""

from __future__ import annotations

import wave
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

RATE, SECONDS = 16000, 1.2
SPOKEN = ("yes", "no", "stop")
WORDS = ("silence", "low", "high", "rising", "falling", *SPOKEN)
OTHER = "other"  # what is spoken, but none of these; it and noise are heard as nothing
Voices = Mapping[str, Sequence[np.ndarray]]  # word -> int16 samples of each voice


def voices() -> dict[str, list[np.ndarray]]:
    """Those of spoken.npz: of each word of SPOKEN and of OTHER, none longer than
    0.8 s."""
    with np.load(Path(__file__).parent / "spoken.npz") as kept:
        found = {name: kept[name] for name in kept.files}
    made: dict[str, list[np.ndarray]] = {}
    for name in sorted(found):
        made.setdefault(name.partition("_")[0], []).append(found[name])
    return made


def recording(
    word: str, rng: np.random.Generator, spoken: Voices
) -> tuple[np.ndarray, int]:
    """int16 samples, and the sample at which the word ends; 0 of silence: a third is
    noise alone, a third has a louder noise in it, a third another word."""
    count = int(RATE * SECONDS)
    made = rng.normal(0, 10 ** rng.uniform(0.5, 2.2), count)
    kind = rng.integers(3) if word == "silence" else -1
    if kind == 0:
        return _held(made), 0
    if word in SPOKEN or kind == 2:
        heard = _spoken(spoken[OTHER if kind == 2 else word], rng)
    else:
        heard = _made("noise" if kind == 1 else word, rng)
    start = int(rng.integers(0, max(1, count - len(heard) - RATE // 10)))
    made[start : start + len(heard)] += 10 ** rng.uniform(2.8, 4.1) * heard
    return _held(made), 0 if word == "silence" else start + len(heard)


def _made(word: str, rng: np.random.Generator) -> np.ndarray:
    """A tone, or noise, at most 1 or so."""
    length = int(RATE * rng.uniform(0.4, 0.6))
    low, high = rng.uniform(300, 600), rng.uniform(1400, 2600)
    ends = {"low": (low, low), "high": (high, high), "rising": (low, high)}
    first, last = ends.get(word, (high, low))
    pitch = np.geomspace(first, last, length) * (1 + 0.01 * rng.normal())
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    tone = np.sin(phase) + rng.uniform(0, 0.5) * np.sin(2 * phase + 1)
    if word == "noise":
        tone = 0.4 * rng.normal(0, 1, length)
    return tone * np.minimum(
        1, np.minimum(np.arange(length), np.arange(length)[::-1]) / 800
    )


def _spoken(each: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """One of the voices, at most 1.5."""
    one = np.asarray(each[int(rng.integers(len(each)))], np.float64)
    return one * (1.5 / np.abs(one).max())


def _held(real: np.ndarray) -> np.ndarray:
    return np.clip(np.round(real), -32768, 32767).astype(np.int16)


def recordings(
    each: int, seed: int, spoken: Voices | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """So many of each word, by default of voices(): samples [n, ..], words [n], where
    they end [n]."""
    rng, spoken = np.random.default_rng(seed), spoken or voices()
    made = [
        (*recording(w, rng, spoken), i)
        for i, w in enumerate(WORDS)
        for _ in range(each)
    ]
    samples, ends, words = zip(*made, strict=True)
    return np.stack(samples), np.array(words), np.array(ends)


def write_wav(path: str | Path, samples: np.ndarray) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.astype("<i2").tobytes())


def read_wav(path: str | Path) -> np.ndarray:
    """Samples of a file of one channel, 16 bits, 16 kHz.

    Errors  ValueError for another form
    """
    with wave.open(str(path), "rb") as file:
        form = file.getnchannels(), file.getsampwidth(), file.getframerate()
        if form != (1, 2, RATE):
            raise ValueError(f"{path}: channels, bytes and rate are {form}")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")
