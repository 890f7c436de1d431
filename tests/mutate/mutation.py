"""A place where the code is broken, and what stands there then."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# the survivors' fields: line numbers and offsets are none of them
Key = tuple[str, str, str, str, str, int]


@dataclass(frozen=True)
class Mutation:
    """`node` becomes `put`, in a function of a file.

    function  qualified: `Builder.loop`; "" outside of all
    operator  which operator draws it; "by hand": none
    nth       of those in the function that are otherwise equal
    begin, end  the bytes of the file that are replaced; both 0: of loop IR, nothing is
    text      what replaces them
    name, tests  of one by hand: what it does, and which tests notice it
    """

    file: str
    function: str
    operator: str
    node: str
    put: str
    nth: int = 0
    begin: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)
    text: str = field(default="", compare=False)
    name: str = field(default="", compare=False)
    tests: str = field(default="", compare=False)

    @property
    def key(self) -> Key:
        return (
            self.file, self.function, self.operator, self.node, self.put, self.nth
        )  # fmt: skip

    @property
    def is_loop(self) -> bool:
        """Whether it is applied to loop IR, when a kernel is built."""
        return self.end == 0

    def applied(self, source: bytes) -> bytes:
        """The file with it."""
        return source[: self.begin] + self.text.encode() + source[self.end :]

    def __str__(self) -> str:
        nth = f" ({self.nth + 1})" if self.nth else ""
        where = f"{self.file} {self.function or 'of the file'}"
        what = f"{self.node} -> {self.put}{nth}"
        return self.name or f"{where}: {self.operator}: {what}"


def numbered(found: list[Mutation]) -> list[Mutation]:
    """Each with its number among those that are otherwise equal."""
    from dataclasses import replace

    seen: dict[Key, int] = {}
    numbers = []
    for one in found:
        numbers.append(seen.get(one.key, 0))
        seen[one.key] = numbers[-1] + 1
    return [replace(m, nth=n) for m, n in zip(found, numbers, strict=True)]
