"""C identifiers for the names of models: sanitised, unique, never a keyword."""

from __future__ import annotations

import re

_WORDS = (
    "auto break case char const continue default do double else enum extern "
    "float for goto if inline int long register restrict return short signed "
    "sizeof static struct switch typedef union unsigned void volatile while "
    "bool true false alignas alignof asm catch class constexpr decltype delete "
    "dynamic_cast explicit export friend mutable namespace new noexcept nullptr "
    "operator private protected public reinterpret_cast static_assert "
    "static_cast template this thread_local throw try typeid typename using "
    "virtual wchar_t and and_eq bitand bitor compl not not_eq or or_eq xor "
    "xor_eq main errno null"
)
_KEYWORDS = frozenset(_WORDS.split())
LONGEST = 40


def identifier(text: str) -> str:
    """Letters, digits and single underscores; starts with a letter."""
    clean = re.sub(r"_+", "_", re.sub(r"[^0-9A-Za-z]", "_", text)).strip("_").lower()
    if not clean:
        clean = "t"
    if clean[0].isdigit():
        clean = f"t_{clean}"
    return clean


def is_keyword(text: str) -> bool:
    """Whether C or C++ forbids the word as a name."""
    return text in _KEYWORDS


class Names:
    """Gives each text its own identifier, the same one every time.

    taken  identifiers that nothing may get
    """

    def __init__(self, taken: tuple[str, ...] = ()) -> None:
        self._taken = set(taken)
        self._known: dict[str, str] = {}

    def of(self, text: str) -> str:
        """The identifier of a name: short, unique among those given before."""
        if text not in self._known:
            clean = identifier(text)[:LONGEST].rstrip("_")
            name, count = clean, 1
            while name in self._taken:
                count += 1
                name = f"{clean}_{count}"
            self._taken.add(name)
            self._known[text] = name
        return self._known[text]
