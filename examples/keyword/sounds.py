"""Recordings of four "words" that a machine can make: a low and a high tone, a rising
and a falling one, in noise; and WAV files of them.
"""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

RATE, SECONDS = 16000, 1.2
WORDS = ("silence", "low", "high", "up", "down")


def recording(word: str, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """int16 samples, and the sample at which the word ends; 0 of silence."""
    count = int(RATE * SECONDS)
    made = rng.normal(0, 10 ** rng.uniform(0.5, 2.2), count)
    if word == "silence":
        return _held(made), 0
    length = int(RATE * rng.uniform(0.4, 0.6))
    start = int(rng.integers(0, count - length - RATE // 10))
    low, high = rng.uniform(300, 600), rng.uniform(1400, 2600)
    ends = {"low": (low, low), "high": (high, high), "up": (low, high)}
    first, last = ends.get(word, (high, low))
    pitch = np.geomspace(first, last, length) * (1 + 0.01 * rng.normal())
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    tone = np.sin(phase) + rng.uniform(0, 0.5) * np.sin(2 * phase + 1)
    rise = np.minimum(1, np.minimum(np.arange(length), np.arange(length)[::-1]) / 800)
    made[start : start + length] += 10 ** rng.uniform(2.8, 4.1) * tone * rise
    return _held(made), start + length


def _held(real: np.ndarray) -> np.ndarray:
    return np.clip(np.round(real), -32768, 32767).astype(np.int16)


def recordings(each: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """So many of each word: samples [n, ..], words [n], where they end [n]."""
    rng = np.random.default_rng(seed)
    made = [(*recording(w, rng), i) for i, w in enumerate(WORDS) for _ in range(each)]
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
