"""C identifiers for the names of models: sanitised, unique, never a keyword."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pybuild.errors import BuildError
from pybuild.short_names import identifier

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
_HEADERS = (
    "assert complex ctype errno fenv float inttypes iso646 limits locale math "
    "setjmp signal stdarg stdbool stddef stdint stdio stdlib string tgmath time "
    "wchar wctype"
)
LONGEST = 40


def is_keyword(text: str) -> bool:
    """Whether C or C++ forbids the word as a name."""
    return text in _KEYWORDS


def is_prefix(text: str) -> bool:
    """Whether a model may be called so: its header and its functions clash with
    nothing of C or crt."""
    reserved = is_keyword(text) or text in _HEADERS.split()
    return not reserved and text != "crt" and not text.startswith("crt_")


def chosen_prefix(name: str | None, path: str) -> str:
    """The prefix of all C names: the user's choice, or the file's name.

    Errors  BuildError for a choice that C cannot have
    """
    made = identifier(Path(path).stem if name is None else name)
    good = made if is_prefix(made) else f"my_{made}"
    if name is not None and name != good:
        what = f"'{name}' cannot be the name of C functions"
        raise BuildError("--name", what, f"for example '{good}'")
    return good


class Names:
    """Gives each text its own identifier, the same one every time.

    taken  identifiers that nothing may get
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._known: dict[str, str] = {}

    def of(self, text: str) -> str:
        """The identifier of a text: short, unique among those given before."""
        if text not in self._known:
            self._known[text] = self.fresh(text)
        return self._known[text]

    def fresh(self, text: str) -> str:
        """Another identifier every time."""
        clean = identifier(text)[:LONGEST].rstrip("_")
        name, count = clean, 1
        while name in self._taken:
            count += 1
            name = f"{clean}_{count}"
        self._taken.add(name)
        return name
