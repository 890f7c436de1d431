"""Words that espeak-ng speaks (Debian's package of that name), at 16 kHz; writes
spoken.npz, the voices that are held out: python speak.py
"""

from __future__ import annotations

import io
import subprocess
import wave
from pathlib import Path

import numpy as np
from sounds import OTHER, RATE, SPOKEN

HERE = Path(__file__).parent
OTHERS = ("left", "right", "seven", "bed", "wow", "marvin", "tree", "house", "dog",
          "nine", "visual", "happy", "on", "off", "eight", "cat", "bird")  # fmt: skip
LEARNED = [
    f"{language}+{voice}"
    for language in ("en-gb", "en-us", "en-gb-scotland")
    for voice in ("m1", "m2", "m4", "m5", "m7", "f1", "f3", "f5")
]
HELD_OUT = ("en-us+m3", "en-gb+m6", "en-us+f2", "en-gb-scotland+f4", "en-gb+m8")
HELD_OUT_OTHERS = ("zero", "sheila", "follow", "backward", "forward")
PACES = (140, 165, 190)  # words a minute


def spoken(word: str, voice: str, pace: int, pitch: int = 50) -> np.ndarray:
    """int16 [n] at 16 kHz, without the silence around it, at most 0.8 s."""
    said = ["espeak-ng", "-v", voice, "-s", str(pace), "-p", str(pitch), "--stdout"]
    done = subprocess.run([*said, word], check=True, capture_output=True)
    with wave.open(io.BytesIO(done.stdout)) as file:
        given = np.frombuffer(file.readframes(1 << 24), "<i2").astype(np.float64)
        rate = file.getframerate()
    loud = np.flatnonzero(np.abs(given) > 0.02 * np.abs(given).max())
    given = given[loud[0] : loud[-1] + 1]
    # another rate: the lowest frequencies of its transform
    count = len(given) * RATE // rate
    made = (
        np.fft.irfft(np.fft.rfft(given)[: count // 2 + 1], count) * count / len(given)
    )
    return np.clip(np.round(made), -32768, 32767).astype(np.int16)[: int(0.8 * RATE)]


def learned() -> dict[str, list[np.ndarray]]:
    """What the training hears: every voice of LEARNED."""
    made = {
        word: [spoken(word, voice, p, q) for voice in LEARNED for p in PACES
               for q in (35, 50, 65)]
        for word in SPOKEN
    }  # fmt: skip
    made[OTHER] = [
        spoken(word, voice, PACES[i % 3])
        for word in OTHERS
        for i, voice in enumerate(LEARNED)
    ]
    return made


def main() -> None:
    made = {
        f"{word}_{i}": spoken(word, voice, 160)
        for word in SPOKEN
        for i, voice in enumerate(HELD_OUT)
    }
    pairs = zip(HELD_OUT_OTHERS, HELD_OUT, strict=True)
    for i, (word, voice) in enumerate(pairs):
        made[f"{OTHER}_{i}"] = spoken(word, voice, 160)
    np.savez_compressed(HERE / "spoken.npz", allow_pickle=False, **made)


if __name__ == "__main__":
    main()
