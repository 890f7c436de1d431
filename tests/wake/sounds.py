"""Made sound at 16,000 samples a second: silence, noise, tones, vowels, and speech of
espeak-ng where it is installed.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import wave

import numpy as np

from pybuild.dtype import Array

RATE = 16000
_SAID = ("okay nabu", "what is the weather like", "okay nabu, turn on the light")


def sound(seconds: int, seed: int = 0) -> Array:
    """Pieces of every kind, one second each, in an order of the seed."""
    rng = np.random.default_rng(seed)
    kinds = (_silence, _noise, _tones, _vowels, _speech)
    pieces = [kinds[rng.integers(len(kinds))](rng) for _ in range(seconds)]
    whole = np.concatenate(pieces)[: seconds * RATE]
    return np.clip(whole, -32768, 32767).astype(np.int16)


def _silence(rng: np.random.Generator) -> Array:
    return np.rint(rng.normal(0, 0.4, RATE))


def _noise(rng: np.random.Generator) -> Array:
    loud = 10 ** rng.uniform(1, 4.4)
    swell: Array = np.hanning(RATE) if rng.random() < 0.5 else np.ones(RATE)
    return swell * rng.normal(0, loud, RATE)


def _tones(rng: np.random.Generator) -> Array:
    t, whole = np.arange(RATE) / RATE, np.zeros(RATE)
    for _ in range(rng.integers(1, 5)):
        low, high = rng.uniform(80, 7000, 2)
        phase = 2 * np.pi * (low * t + (high - low) * t * t / 2)
        whole += 10 ** rng.uniform(1, 3.9) * np.sin(phase)
    return whole


def _vowels(rng: np.random.Generator) -> Array:
    """A pitch with three formants that move, in syllables."""
    t = np.arange(RATE) / RATE
    pitch = rng.uniform(90, 250) * (1 + 0.1 * np.sin(2 * np.pi * 3 * t))
    phase, whole = 2 * np.pi * np.cumsum(pitch) / RATE, np.zeros(RATE)
    ends = [
        rng.uniform(low, high, 2)
        for low, high in ((300, 900), (900, 2300), (2300, 3200))
    ]
    for k in range(1, 30):
        gain = np.zeros(RATE)
        for first, last in ends:
            middle = first + (last - first) * t
            gain += np.exp(-(((k * pitch - middle) / 120) ** 2))
        whole += gain * np.sin(k * phase)
    syllables = np.clip(np.sin(2 * np.pi * rng.uniform(2, 5) * t), 0, 1)
    return 4000 * syllables * whole


def _speech(rng: np.random.Generator) -> Array:
    """espeak-ng's, some two seconds; vowels where it is absent."""
    program = shutil.which("espeak-ng")
    if program is None:
        return _vowels(rng)
    speed, pitch = rng.integers(110, 220), rng.integers(10, 90)
    words = [program, "--stdout", f"-s{speed}", f"-p{pitch}", str(rng.choice(_SAID))]
    done = subprocess.run(words, capture_output=True, check=True)
    with wave.open(io.BytesIO(done.stdout)) as file:
        data = np.frombuffer(file.readframes(1 << 22), np.int16).astype(float)
        rate = file.getframerate()
    at = np.arange(int(len(data) * RATE / rate)) * rate / RATE
    return np.interp(at, np.arange(len(data)), data) * 10 ** rng.uniform(-1.5, 0)
