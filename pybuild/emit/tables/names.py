"""C identifiers for the names of models: sanitised, unique, never a keyword."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pybuild.errors import BuildError
from pybuild.text.c_words import BEGINNINGS, TAKEN, WORDS
from pybuild.text.short_names import identifier

LONGEST = 40
# Names of functions, types and tables that generated files define themselves
RESERVED = (
    "init", "run", "reset", "selftest", "memory", "model", "strerror", "graph",
    "arena", "weights", "set", "bind", "get", "pad", "args", "steps", "stages",
    "operands", "rows", "links", "constants", "tensors", "name", "regions",
    "check_int", "check_float",
    "check_size", "predict", "inputs", "outputs", "parameters",
    "params_image", "open_params", "load_params", "share_params", "release_params",
    "layouts", "region_devices", "set_devices", "push_rows", "rows_wanted",
    "rows_left", "kept", "keeps", "save_state", "restore_state",
)  # fmt: skip
# and with NAME_verify
VERIFIED = (
    "verify", "sums", "sum_list", "sum_list_again", "model_again", "steps_again",
    "rows_again", "constants_again", "tensors_again", "kept_again", "keeps_again",
)  # fmt: skip
NUMBERED = ("dims", "tensor", "taken", "selftest_input", "selftest_output")


def is_keyword(text: str) -> bool:
    """True if C or C++ forbids the word as a name, or a macro replaces it."""
    return text in WORDS


def is_prefix(text: str) -> bool:
    """True if a model may be called so: its files, its functions and their struct clash
    with nothing of C, of crt, or of build systems."""
    return text not in TAKEN and text != "crt" and not text.startswith(BEGINNINGS)


def chosen_prefix(name: str | None, path: str) -> str:
    """The prefix of all C names: the user's choice, or the file's name.

    Errors  BuildError for a choice that C cannot have
    """
    made = identifier(Path(path).stem if name is None else name)
    good = next(
        word
        for word in (made, f"{made}_net", f"my_{made}", f"my_{made}_net")
        if is_prefix(word)
    )
    if name is not None and name != good:
        what = f"'{name}' cannot be the name of C functions"
        if good == f"{made}_net":
            what = (
                f"'{name}' is reserved by C, its library, a compiler or a build system"
            )
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
        """A new identifier every time."""
        clean = identifier(text)[:LONGEST].rstrip("_")
        name, count = clean, 1
        while name in self._taken:
            count += 1
            name = f"{clean}_{count}"
        self._taken.add(name)
        return name


def accessors(symbol: str) -> tuple[str, str, str]:
    """The suffixes after NAME_ in the functions of an input or output."""
    return symbol, f"set_{symbol}", f"bind_{symbol}"
