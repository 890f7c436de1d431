"""Wake words: what a package knows of them, and the C that decides when one is heard.

The steps of the decision are those of ESPHome's micro_wake_word, so that the same
sound gives the same words; a test compares with a second description of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.ecosystems.examples import TEMPLATES
from pybuild.emit.content import Content
from pybuild.package.tree import filled
from pybuild.records import dataclass

ZEPHYR_SAMPLE = "samples/listen"
LEAST_WINDOW = 10  # steps of a sliding window that a configuration may ask for


@dataclass(frozen=True)
class Word:
    """A net for a wake word, or for voice (VAD), as its manifest describes it.

    name    of the net: a C identifier
    phrase  what is said
    cutoff  the least mean probability, in 1/255
    window  steps of the sliding window
    """

    name: str
    phrase: str
    cutoff: int
    window: int


@dataclass(frozen=True)
class Words:
    """The nets that hear the same rows of features.

    words   wake words, in the order of their numbers
    vad     the net that says whether anyone speaks; None: no such net
    hop     samples between two rows; silent: rows before the first whole window
    rows    of features in a step of the nets; bands: numbers in a row
    """

    words: Sequence[Word]
    vad: Word | None
    hop: int
    silent: int
    rows: int
    bands: int

    @property
    def nets(self) -> tuple[Word, ...]:
        """The nets in the order of their scores: VAD is the last."""
        return (*self.words, *((self.vad,) if self.vad else ()))

    @property
    def longest(self) -> int:
        return max(LEAST_WINDOW, *(net.window for net in self.nets))


def features_name(name: str) -> str:
    """The name of the model that makes features, in a package."""
    return f"{name}_features"


def nets_name(name: str) -> str:
    """The name of the model with all nets, in a package."""
    return f"{name}_nets"


def words_files(name: str, words: Words) -> dict[str, Content]:
    """NAME_words.h and NAME_words.c: samples in, words out."""
    whole = _values(name, words)
    room = TEMPLATES / "words"
    return {
        f"{name}_words.h": filled(room / "words.h.in", whole),
        f"{name}_words.c": filled(room / "words.c.in", whole),
    }


def arduino_listener(name: str) -> dict[str, Content]:
    """A sketch that hears words."""
    return {"examples/listen/listen.ino": _filled("listen.ino", name)}


def zephyr_listener(name: str) -> dict[str, Content]:
    """A sample that hears words; ZEPHYR_SAMPLE is its folder."""
    return {
        f"{ZEPHYR_SAMPLE}/CMakeLists.txt": _filled("zephyr-sample.txt", name),
        f"{ZEPHYR_SAMPLE}/prj.conf": _filled("prj.conf", name),
        f"{ZEPHYR_SAMPLE}/sample.yaml": _filled("sample.yaml", name),
        f"{ZEPHYR_SAMPLE}/src/main.c": _filled("zephyr-main.c", name),
    }


def _filled(template: str, name: str) -> str:
    values = {"name": name, "upper": name.upper()}
    return filled(TEMPLATES / "words" / f"{template}.in", values)


def _values(name: str, words: Words) -> dict[str, str]:
    nets, model = words.nets, nets_name(name)
    phrases = ",\n".join(f"    {_literal(word.phrase)}" for word in words.words)
    starts = ",\n".join(f"    {{{net.cutoff}u, {net.window}u}}" for net in nets)
    binds = "".join(
        "    if (error == CRT_OK)\n"
        f"        error = {model}_bind_{net.name}_rows(nets, rows);\n"
        for net in nets
    )
    scores = "".join(
        f"        new_score(&w->scores[{i}], {model}_{net.name}(nets)[0]);\n"
        for i, net in enumerate(nets)
    )
    numbers = "".join(
        f"#define {name.upper()}_WORD_{word.name.upper()} {i}u\n"
        for i, word in enumerate(words.words)
    )
    return {
        "name": name, "upper": name.upper(), "features": features_name(name),
        "nets": model, "hop": str(words.hop), "silent": str(words.silent),
        "rows": str(words.rows), "bands": str(words.bands),
        "count": str(len(words.words)), "scores": str(len(nets)),
        "longest": str(words.longest), "phrases": phrases, "starts": starts,
        "binds": binds, "new_scores": scores, "numbers": numbers,
        "vad": "1" if words.vad else "0",
    }  # fmt: skip


def _literal(text: str) -> str:
    """Text as a C string, in UTF-8."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{plain}"'
