"""The kinds of option values, read alike wherever they are written.

"64K" on the command line, ram-limit = "64K" in crt.toml and ram_limit="64K" in Python
go through the same function, and so does ram_limit=65536.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from os import PathLike
from typing import Any

from pybuild.errors import fitting
from pybuild.files.shape import shown
from pybuild.options.regions import RegionSpec, read_regions
from pybuild.records import dataclass
from pybuild.targets.board import board_names
from pybuild.targets.names import chips, hint_for, is_known, known_names
from pybuild.targets.target import Target

Reader = Callable[[Any], Any]

_SIZE = re.compile(r"([0-9]{1,18})\s*(|[kKmM])(?:i?[bB])?")
_SCALE = {"": 1, "k": 1024, "m": 1024**2}
BOTH = ("constant", "replaceable")


class Wrong(ValueError):
    """A value that an option cannot have: what is wrong, and a hint."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


@dataclass(frozen=True)
class Kind:
    """One sort of values.

    read     a word, or what Python or TOML has instead, to the value
             Errors  Wrong; BuildError with several problems
    metavar  how help calls it; "": a flag, which has no value
    many     may be given again and again; `read` gets all of them
    known    the words to choose from, if they are few
    files    "file", "folder": what a shell completes; "": neither
    flipped  of pairs: the command line has the key behind the =
    example  a value as TOML and JSON have it
    """

    read: Reader
    metavar: str = ""
    many: bool = False
    known: Callable[[], tuple[str, ...]] = tuple
    files: str = ""
    flipped: bool = False
    example: Any = None


def _quoted(value: Any) -> str:
    """A number or a text in quotation marks."""
    return shown(value if isinstance(value, Mapping | list | tuple) else str(value))


# ---- one value ----------------------------------------------------------------


def text(metavar: str, files: str = "") -> Kind:
    return Kind(_text, metavar, files=files, example=metavar)


def _text(value: Any) -> str:
    if not isinstance(value, str | PathLike):
        raise Wrong(f"{shown(value)} is not a text")
    if "\0" in str(value):
        raise Wrong(f"{shown(str(value))} has a character that no text has")
    return str(value)


def file(suffix: str) -> Kind:
    """A file to write, of the one format that there is."""

    def read(value: Any) -> str:
        name = _text(value)
        if name and not name.lower().endswith(suffix):
            raise Wrong(f"'{name}' is not a {suffix} file", f"FILE{suffix}")
        return name

    return Kind(read, f"FILE{suffix}", files="file", example=f"FILE{suffix}")


def word(*known: str) -> Kind:
    """Reads one of a few words."""

    def read(value: Any) -> str:
        if value not in known:
            raise Wrong(f"{_quoted(value)} is not known", fitting(str(value), known))
        return str(value)

    return Kind(read, "|".join(known), known=lambda: known, example=known[0])


def _input(value: Any) -> str:
    if str(value).endswith(".npz"):
        raise Wrong(f"'{value}' is a file", f"--data {value} passes its arrays")
    return str(_INPUT.read(value))


def _api(value: Any) -> str:
    text = _text(value)
    if text and not re.fullmatch(r"tvm(:[A-Za-z][A-Za-z0-9_]{0,39})?", text):
        raise Wrong(f"{_quoted(value)} is not known", "tvm, or tvm:MODULE")
    return text


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Wrong(f"{shown(value)} is neither true nor false")
    return value


def count(least: int = 1, metavar: str = "N") -> Kind:
    """A number that is at least so."""

    def read(value: Any) -> int:
        number = value if isinstance(value, str) else repr(value)
        if not re.fullmatch(r"-?[0-9]{1,18}", number) or int(number) < least:
            raise Wrong(f"{_quoted(value)} is not a number from {least}")
        return int(number)

    return Kind(read, metavar, example=least)


def _size(value: Any) -> int:
    """Bytes of 4096, "64K" or "1M"; K is 1024."""
    found = _SIZE.fullmatch(value.strip() if isinstance(value, str) else repr(value))
    if found is None:
        raise Wrong(f"{_quoted(value)} is not a size", "like 4096, 64K or 1M")
    return int(found[1]) * _SCALE[found[2].lower()]


def _limits(value: Any) -> int | dict[int, int]:
    if isinstance(value, Mapping):
        return {_device(n): _size(each) for n, each in value.items()}
    return _size(value)


def _device(value: Any) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", str(value)):
        raise Wrong(f"{_quoted(value)} is not the number of a device", "0 is the CPU")
    return int(value)


def _real(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or isinstance(value, bool):
        raise Wrong(f"{_quoted(value)} is not a number")
    return number


def _share(value: Any) -> float:
    """0.005 of 0.005, "0.005" or "0.5%"."""
    whole, hint = str(value).strip(), "like 0.5% or 0.005"
    try:
        share = _real(whole.removesuffix("%")) / (100 if whole.endswith("%") else 1)
    except Wrong:
        raise Wrong(f"{_quoted(value)} is not a share", hint) from None
    if not 0 <= share < 1:
        raise Wrong(f"{share:g} is not a share from 0 to 1", hint)
    return share


def _percent(value: Any) -> float:
    number = _real(value)
    if not 50 < number <= 100:
        raise Wrong(f"{number:g} is not above 50 and at most 100")
    return number


_INPUT = word("reuse", "keep", "consumable")
INPUT = replace(_INPUT, read=_input)
API = Kind(_api, "tvm[:MODULE]", known=lambda: ("tvm",), example="tvm")
FLAG = Kind(_flag)
SIZE = Kind(_limits, "SIZE", example="64K")
PERCENT = Kind(_percent, "P", example=99.9)
SHARE = Kind(_share, "SHARE", example="0.5%")
BOARD = Kind(_text, "BOARD", known=lambda: ("host", *board_names()))


# ---- several ------------------------------------------------------------------


def _list(value: Any) -> list[Any]:
    """The values of an option that may be given again; one may stand alone."""
    if isinstance(value, Mapping):
        raise Wrong("a table is not a list")
    if isinstance(value, str | PathLike) or not isinstance(value, Iterable):
        return [value]
    return list(value)


def names(metavar: str, files: str = "") -> Kind:
    def read(value: Any) -> tuple[str, ...]:
        return tuple(_text(each) for each in _list(value))

    return Kind(read, metavar, many=True, files=files, example=[metavar])


def words(*known: str) -> Kind:
    """Some of a few."""
    one = word(*known)

    def read(value: Any) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.read(each) for each in _list(value)))

    return replace(one, read=read, many=True, example=[*known])


def listed(*known: str, whole: str, more: Sequence[str] = ()) -> Kind:
    """Some of a few, several with commas between; `whole` is all of them but `more`."""
    every = (*known, *more)
    one = word(*every, whole)

    def read(value: Any) -> tuple[str, ...]:
        texts = (_text(each) for each in _list(value))
        given = [one.read(part.strip()) for text in texts for part in text.split(",")]
        chosen = {*given, *(known if whole in given else ())}
        return tuple(name for name in every if name in chosen)

    return Kind(read, "NAME,...", many=True, known=one.known, example=[whole])


def pairs(
    form: str, value: Reader, example: Any, key: Reader = _text, flipped: bool = False
) -> Kind:
    """A mapping, or words like `form` that stand for its items."""

    def read(given: Any) -> dict[Any, Any]:
        if isinstance(given, Mapping):
            items = list(given.items())
        else:
            items = [_pair(each, form, flipped) for each in _list(given)]
        try:
            return {key(name): value(each) for name, each in items}
        except Wrong as wrong:
            raise Wrong(wrong.what, wrong.hint or form) from None

    return Kind(read, form, many=True, flipped=flipped, example=example)


def _pair(given: Any, form: str, flipped: bool) -> tuple[str, str]:
    if flipped and given == "auto":
        return "auto", "auto"
    name, equals, value = _text(given).rpartition("=")
    if not name or not equals or not value:
        raise Wrong(f"'{given}' is not {form}")
    return (value, name) if flipped else (name, value)


def _numbers(value: Any) -> Any:
    """1,3,-1: whole numbers stay whole; arrays stay as they are."""
    if not isinstance(value, str):
        return value if hasattr(value, "dtype") else _nested(value)
    try:
        found = [float(part) for part in value.split(",")]
    except ValueError:
        raise Wrong(f"{_quoted(value)} are not numbers") from None
    return [int(n) if n.is_integer() else n for n in found]


def _nested(value: Any) -> Any:
    """A number, or lists of numbers that have one shape."""
    if not isinstance(value, list | tuple):
        if not isinstance(value, Real):
            raise Wrong(f"{_quoted(value)} is not a number")
        return value
    if len({_shape(_nested(each)) for each in value}) > 1:
        raise Wrong("its lists are of several lengths")
    return value


def _shape(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        return ()
    return (len(value), *(_shape(value[0]) if value else ()))


def _place(value: Any) -> int | str:
    return int(value) if re.fullmatch(r"[0-9]{1,9}", str(value)) else _text(value)


def _groups(value: Any) -> tuple[tuple[str, ...], ...]:
    """The groups in "a,b", or in several such texts or lists of names."""
    given = _list(value)
    made = (each.split(",") if isinstance(each, str) else each for each in given)
    return tuple(tuple(_text(name).strip() for name in _list(one)) for one in made)


def _params(value: Any) -> str | tuple[str, ...]:
    given = tuple(_text(each) for each in _list(value))
    return given[0] if len(given) == 1 and given[0] in BOTH else given


def _regions(value: Any) -> Any:
    if isinstance(value, Mapping):
        value = [f"{name}={each}" for name, each in value.items()]
    given = [value] if isinstance(value, RegionSpec) else _list(value)
    return read_regions(x if isinstance(x, RegionSpec) else _text(x) for x in given)


def _cpus() -> tuple[str, ...]:
    return (*known_names(), *chips())


def _cpu(value: Any) -> str | Target:
    if isinstance(value, Target):
        return value
    if not isinstance(value, str) or not is_known(value):
        raise Wrong(f"{_quoted(value)} is not known", hint_for(str(value)))
    return str(value)


def _target(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_device(number): _cpu(each) for number, each in value.items()}
    return _cpu(value)


_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def _duration(value: Any) -> float:
    """Seconds, of a number or of a text with a unit."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(s|ms|us)?", str(value).strip())
    if found is None or not 0 < float(found[1]) < math.inf:
        raise Wrong(f"{_quoted(value)} is not a time", "50ms, 20us, or seconds as 0.05")
    return float(found[1]) * _SECONDS[found[2] or "s"]


DURATION = Kind(_duration, "TIME", example="50ms")
TARGET = Kind(_target, "CPU", known=_cpus, example="cortex-m4")
DEVICES = pairs("N=CPU", _cpu, {"1": "cortex-m4"}, _device)
LAYOUT = pairs("NAME=nhwc", word("nhwc", "nchw", "nhcw").read, {"NAME": "nhwc"})
NUMBERS = pairs("NAME=N", count().read, {"NAME": 1})
VALUES = pairs("NAME=N,...", _numbers, {"NAME": [1, -1]})
PLACES = pairs("WHAT=N", _place, {"*": "cost"})
STATE = pairs("OUTPUT=INPUT", _text, ["OUTPUT=INPUT"], flipped=True)
RENAMES = pairs("OLD=NEW", _text, {"OLD": "NEW"})
GROUPS = Kind(_groups, "A,B", many=True, example=["A,B"])
PARAMS = Kind(
    _params, "NAME", many=True, known=lambda: ("replaceable",), example="replaceable"
)
REGIONS = Kind(_regions, "NAME=SIZE", many=True, example=["dtcm=16K:fast"])
