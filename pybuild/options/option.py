"""One option of pybuild, and reading the values of many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, fields
from typing import Any, TypeVar

from pybuild.errors import BuildError, Problem, fitting
from pybuild.options.kinds import FLAG, Kind, Wrong
from pybuild.options.regions import RegionSpec
from pybuild.records import dataclass
from pybuild.targets.target import Target

Chosen = TypeVar("Chosen")

_NO = "no-"


@dataclass(frozen=True)
class Option:
    """One option, wherever users write it.

    keyword  of Python, and key of report.json
    word     after -- on the command line, and key of crt.toml; "": in Python only
    group    heading in help
    default  also the value of None
    short    another word, as -o
    alone    on the command line it may stand without a value, which is then ""
    """

    keyword: str
    word: str
    kind: Kind
    default: Any
    group: str
    help: str
    short: str = ""
    alone: bool = False

    @property
    def where(self) -> str:
        """The option's name in messages."""
        return f"--{self.word}" if self.word else self.keyword

    @property
    def is_off(self) -> bool:
        """--no-x is x=False in Python."""
        return self.word.startswith(_NO)

    def of_word(self, value: Any) -> Any:
        """The value under `keyword` for a value under `word`."""
        return not value if self.is_off and isinstance(value, bool) else value

    def read(self, value: Any) -> Any:
        """The checked value of the option.

        Errors  BuildError with everything that is wrong with the value
        """
        if value is None:
            return self.default
        try:
            return self.kind.read(value)
        except Wrong as wrong:
            raise BuildError(self.where, wrong.what, wrong.hint) from None

    def words(self, value: Any) -> list[str]:
        """The value as on the command line."""
        if self.kind is FLAG:
            return [self.where]
        match plain(value):
            case dict() as given:
                parts = [self._pair(name, each) for name, each in given.items()]
            case list() as given:
                parts = [",".join(x) if isinstance(x, list) else str(x) for x in given]
            case one:
                parts = [str(one)]
        return [word for part in parts for word in (self.where, part)]

    def _pair(self, name: str, value: Any) -> str:
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        return f"{text}={name}" if self.kind.flipped else f"{name}={text}"


def option(
    default: Any, kind: Kind, group: str, help: str, *, word: str | None = None,
    short: str = "", alone: bool = False,
) -> Any:  # fmt: skip
    """A field of a dataclass of options; its name is the keyword.

    word  None: the keyword with dashes
    """
    facts: dict[str, Any] = {"word": word, "kind": kind, "group": group, "help": help}
    facts |= {"default": default, "short": short, "alone": alone}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=facts)
    return field(default=default, metadata=facts)


def options_in(*chosen: type[Any]) -> tuple[Option, ...]:
    """The options of classes, in their order."""
    found = []
    for kind in chosen:
        for one in fields(kind):
            facts = dict(one.metadata)
            word = facts.pop("word")
            word = one.name.replace("_", "-") if word is None else word
            found.append(Option(one.name, word, **facts))
    return tuple(found)


def of_words(*chosen: type[Any]) -> tuple[Option, ...]:
    """The options that are on the command line, and in crt.toml."""
    return tuple(one for one in options_in(*chosen) if one.word)


def british(name: str, known: Iterable[str]) -> str:
    """A word of options as they are spelled here: optimise for optimize; other words as
    they are."""
    here = tuple(known)
    if name in here:
        return name
    other = name.replace("ize", "ise").replace("license", "licence")
    return other if other in here else name


def parse_options(
    kind: type[Chosen], given: Mapping[str, Any]
) -> tuple[Chosen, list[Problem]]:
    """The options of a class by their keywords, and everything that is wrong with them;
    what is wrong has its default.

    Errors  TypeError for other keywords, as functions have it
    """
    known = {one.keyword: one for one in options_in(kind)}
    for name in given:
        if name not in known:
            raise TypeError(f"there is no option '{name}'; {fitting(name, known)}")
    values: dict[str, Any] = {}
    found: list[Problem] = []
    for name, value in given.items():
        try:
            values[name] = known[name].read(value)
        except BuildError as error:
            found += error.problems
    return kind(**values), found


def read_options(kind: type[Chosen], given: Mapping[str, Any]) -> Chosen:
    """The checked options.

    Errors  BuildError with everything that is wrong
    """
    made, found = parse_options(kind, given)
    if found:
        raise BuildError.of(found)
    return made


def keywords(options: object) -> dict[str, Any]:
    """The values by keyword, as they are."""
    known = options_in(type(options))
    return {one.keyword: getattr(options, one.keyword) for one in known}


def plain(value: Any) -> Any:
    """A value as JSON and TOML have it; reading it gives the value again."""
    match value:
        case Mapping():
            return {str(name): plain(each) for name, each in value.items()}
        case RegionSpec():
            return value.text
        case Target():
            return value.name
        case str() | int() | float() | None:
            return value
        case Iterable():
            return [plain(each) for each in value]
    return value
