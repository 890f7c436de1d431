"""The manifest of a wake word, version 2 of micro wake word: a .json beside its net."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pybuild.ecosystems.words import Word
from pybuild.errors import BuildError, Problem
from pybuild.files.parse import Unreadable, parse_json
from pybuild.files.read import WRITTEN, read_bytes
from pybuild.files.shape import Schema, problems_of
from pybuild.records import dataclass

# what a manifest calls the net that says whether anyone speaks
VAD = "vad"
LONGEST = 255  # steps of a sliding window
_SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "type": {"const": "micro"},
        "version": {"const": 2},
        "wake_word": {"type": "string"},
        "micro": {
            "type": "object",
            "properties": {
                "probability_cutoff": {"type": "number"},
                "sliding_window_size": {"type": "integer"},
                "feature_step_size": {"type": "integer"},
            },
            "required": [
                "probability_cutoff", "sliding_window_size", "feature_step_size"
            ],
        },
    },
    "required": ["type", "version", "wake_word", "micro"],
}  # fmt: skip
_HINT = "a manifest of micro wake word, version 2"


@dataclass(frozen=True)
class Manifest:
    """The contents of the .json beside a net; step: milliseconds between two rows."""

    word: Word
    step: int

    @property
    def is_vad(self) -> bool:
        return self.word.phrase == VAD


def read_manifest(net: str | Path, name: str) -> Manifest:
    """The manifest beside a net: okay_nabu.json beside okay_nabu.tflite.

    name    of the net, a C identifier
    Errors  BuildError with everything that is wrong with it
    """
    path = Path(net).with_suffix(".json")
    told = _read(path, Path(net).name)
    found = problems_of(path.name, told, _SCHEMA, _HINT)
    if found:
        raise BuildError.of(found)
    micro = told["micro"]
    cutoff, window = float(micro["probability_cutoff"]), micro["sliding_window_size"]
    step = micro["feature_step_size"]
    if not 0 <= cutoff <= 1:
        what = f"micro.probability_cutoff is {cutoff}"
        found.append(Problem(path.name, what, "a probability, from 0 to 1"))
    if not 1 <= window <= LONGEST:
        what = f"micro.sliding_window_size is {window}"
        found.append(Problem(path.name, what, f"1 to {LONGEST} steps"))
    if not 1 <= step <= 30:
        what = f"micro.feature_step_size is {step}"
        found.append(Problem(path.name, what, "1 to 30 milliseconds"))
    if found:
        raise BuildError.of(found)
    return Manifest(Word(name, told["wake_word"], int(cutoff * 255), window), step)


def _read(path: Path, net: str) -> Any:
    try:
        return parse_json(read_bytes(path, WRITTEN))
    except FileNotFoundError:
        what = f"is not there; it says when the word of {net} is heard"
        raise BuildError(path.name, what, _HINT) from None
    except OSError as error:
        raise BuildError(path.name, f"cannot be read ({error.strerror})") from None
    except Unreadable as error:
        line = f":{error.line}" if error.line else ""
        raise BuildError(f"{path.name}{line}", error.what, _HINT) from None
