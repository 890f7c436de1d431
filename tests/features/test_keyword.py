"""examples/keyword: WAV files to words, in numpy, compiled, and on a simulated board
with the bits of numpy.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bench.keyword_costs import example
from tests.toolchains import ROOT, require

WORDS = ("low", "rising", "yes", "stop", "silence")


@pytest.fixture(scope="module")
def whole() -> Any:
    return example().chains()[1]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A WAV file of some words, of voices that the training did not hear."""
    sounds, folder = example("sounds"), tmp_path_factory.mktemp("wav")
    rng, voices, made = np.random.default_rng(12), sounds.voices(), {}
    for word in WORDS:
        made[word] = folder / f"{word}.wav"
        sounds.write_wav(made[word], sounds.recording(word, rng, voices)[0])
    return made


def _wanted(word: str) -> list[str]:
    return [] if word == "silence" else [word]


@pytest.mark.parametrize("word", WORDS)
def test_wav_to_word(word: str, files: dict[str, Path], whole: Any) -> None:
    """Compiled, and by numpy: the same words, of the same bits."""
    listen = example()
    samples = example("sounds").read_wav(files[word])
    made, twin = listen.Compiled(whole)(samples), whole(samples)
    assert listen.words_of(made) == _wanted(word)
    for name, rows in twin.items():
        np.testing.assert_array_equal(made[name], rows)


def test_wav_to_word_on_a_board(files: dict[str, Path], whole: Any) -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require(tool)
    listen = example()
    board = listen.Board(whole)
    for word in ("rising", "yes", "silence"):
        samples = example("sounds").read_wav(files[word])
        found, twin = board(samples), whole(samples)
        assert listen.words_of(found) == _wanted(word)
        for name, rows in twin.items():
            np.testing.assert_array_equal(found[name], rows)


def test_most_words_are_heard(whole: Any) -> None:
    """With the network in float, too."""
    listen, real = example(), example().chains()[0]
    samples, words, _ = example("sounds").recordings(3, 7)
    for net in (real, whole):
        made = map(listen.Compiled(net), samples)
        count = sum(listen.right(m, w) for m, w in zip(made, words, strict=True))
        assert count >= 0.9 * len(words)


def test_words_are_printed(
    files: dict[str, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["listen.py", str(files["yes"])])
    example().main()
    assert capsys.readouterr().out == f"{files['yes']}: yes\n"


def test_another_form_of_wav_is_refused(tmp_path: Path) -> None:
    import wave

    sounds = example("sounds")
    with wave.open(str(tmp_path / "two.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(8))
    with pytest.raises(ValueError, match=r"are \(2, 2, 8000\)"):
        sounds.read_wav(tmp_path / "two.wav")


def test_what_is_no_word_is_heard_as_nothing(whole: Any) -> None:
    """Noise that is loud, and words of other names."""
    listen, sounds = example(), example("sounds")
    samples, _, _ = sounds.recordings(9, 31)
    heard = listen.Compiled(whole)
    told = [listen.words_of(heard(one)) for one in samples[:9]]
    assert told.count([]) >= 8


def test_the_front_of_the_training_is_the_front_of_the_build() -> None:
    text = (ROOT / "examples" / "keyword" / "train.py").read_text()
    assert 'read_front(HERE / "front.toml").features' in text
