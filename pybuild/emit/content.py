"""Generated files that are too large to be held twice: made piece by piece.

Weights as C are four times as long as their bytes, those of an object are held anyway;
all other files are plain strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from pybuild.records import dataclass


class Text:
    """Equal texts each time; str() of it is the whole."""

    def __init__(self, pieces: Callable[[], Iterable[str]]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces())

    def __str__(self) -> str:
        return "".join(self)


@dataclass(frozen=True)
class Joined:
    """A file of bytes, in parts that are elsewhere too; bytes() of it is the whole."""

    parts: tuple[bytes | memoryview, ...]

    def __iter__(self) -> Iterator[bytes | memoryview]:
        return iter(self.parts)

    def __bytes__(self) -> bytes:
        return b"".join(self.parts)


Content = str | bytes | Text | Joined


def pieces(content: Content) -> Iterator[bytes | memoryview]:
    """The bytes of a file."""
    for piece in (content,) if isinstance(content, str | bytes) else content:
        yield piece.encode() if isinstance(piece, str) else piece


def whole(files: Mapping[str, Content]) -> dict[str, str]:
    """Texts as plain strings."""
    return {name: str(text) for name, text in files.items()}
