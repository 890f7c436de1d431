"""A generated text that is too large to be held: made piece by piece, when it is read.

Weights as C are four times as long as their bytes; all other files are plain strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping


class Text:
    """Equal texts each time; str() of it is the whole."""

    def __init__(self, pieces: Callable[[], Iterable[str]]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces())

    def __str__(self) -> str:
        return "".join(self)


Content = str | bytes | Text


def whole(files: Mapping[str, Content]) -> dict[str, str]:
    """Texts as plain strings."""
    return {name: str(text) for name, text in files.items()}
