"""Dataclasses that are made when they are first used are what dataclasses makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from pybuild import records
from tests.conftest import ROOT

DECORATORS = [dataclasses.dataclass, records.dataclass]


def _point(decorator: Callable[..., Any]) -> Any:
    @decorator(frozen=True)
    class Point:
        """A place."""

        x: int
        y: int = 2
        near: tuple[int, ...] = dataclasses.field(default=(), compare=False)
        notes: list[str] = dataclasses.field(default_factory=list, repr=False)
        last: str = dataclasses.field(default="", kw_only=True)
        hidden: int = dataclasses.field(init=False, default=4, hash=False)
        found: set[int] = dataclasses.field(init=False, default_factory=set)

    return Point


def _solid(decorator: Callable[..., Any]) -> Any:
    @decorator(frozen=True)
    class Solid(_point(decorator)):  # type: ignore[misc]
        z: int = 3

        def __post_init__(self) -> None:
            object.__setattr__(self, "sum", self.x + self.y + self.z)

        def __repr__(self) -> str:
            return f"<{self.x}>"

    return Solid


def _hash(one: Any) -> int:
    """With values that have a hash."""
    for name in ("found", "notes"):
        object.__setattr__(one, name, ())
    return hash(one)


# what somebody may do first with such a class, each alone
USES: dict[str, Callable[[Any], Any]] = {
    "repr": lambda cls: repr(cls(1)).split(".")[-1],
    "equal": lambda cls: (cls(1) == cls(1, near=(3,)), cls(1) == cls(2), cls(1) == 1),
    "hash": lambda cls: isinstance(_hash(cls(1)), int),
    "fields": lambda cls: [(f.name, f.compare) for f in dataclasses.fields(cls)],
    "is": dataclasses.is_dataclass,
    "replace": lambda cls: dataclasses.asdict(dataclasses.replace(cls(1), y=9)),
    "matched": lambda cls: cls.__match_args__,
    "signature": lambda cls: str(inspect.signature(cls)),
    "default": lambda cls: (cls(0).y, cls.near),
    "same hash": lambda cls: _hash(cls(1)) == _hash(cls(1, near=(3,))),
    "too many": lambda cls: cls(1, 2, (), [], "a", 5, 6),
    "too few": lambda cls: cls(),
    "unknown": lambda cls: cls(1, hidden=3),
    "by name": lambda cls: cls(x=1, last="a").last,
    "not shared": lambda cls: cls(1).notes is cls(1).notes,
    "subclass of": lambda cls: cls(1) != type("Other", (cls,), {})(1),
    "copies": lambda cls: copy.deepcopy(cls(1, notes=["a"])).notes,
    "mro": lambda cls: [dataclasses.is_dataclass(base) for base in cls.__mro__],
}


@pytest.mark.parametrize("make", [_point, _solid])
@pytest.mark.parametrize("use", USES)
def test_first_use(make: Callable[..., Any], use: str) -> None:
    want, have = (_told(USES[use], make(decorator)) for decorator in DECORATORS)
    assert have == want


def _told(use: Callable[[Any], Any], cls: Any) -> Any:
    try:
        return use(cls)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("make", [_point, _solid])
@pytest.mark.parametrize("constructed", [True, False])
def test_frozen(make: Callable[..., Any], constructed: bool) -> None:
    """Of an instance that no constructor made, too."""

    def one() -> Any:
        cls = make(records.dataclass)
        return cls(1) if constructed else cls.__new__(cls)

    with pytest.raises(dataclasses.FrozenInstanceError, match="assign to field 'x'"):
        one().x = 5
    with pytest.raises(
        dataclasses.FrozenInstanceError, match="assign to field 'other'"
    ):
        one().other = 5
    with pytest.raises(dataclasses.FrozenInstanceError, match="delete field 'x'"):
        del one().x


def test_without_parentheses() -> None:
    @records.dataclass
    class Open:
        x: int = 1

    one = Open()
    one.x = 4
    assert one == Open(4)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_fields_may_have_any_name() -> None:
    @records.dataclass(frozen=True)
    class Named:
        set: int = 1
        factory: list[int] = dataclasses.field(default_factory=list)
        _set: int = 2

    assert repr(Named()).endswith("Named(set=1, factory=[], _set=2)")


def test_own_methods_stay() -> None:
    solid = _solid(records.dataclass)
    assert repr(solid(7)) == "<7>" and solid(1, 2).sum == 6


def test_subclass_that_is_no_dataclass() -> None:
    class Named(_point(records.dataclass)):  # type: ignore[misc]
        def name(self) -> str:
            return f"{self.x}"

    assert Named(3).name() == "3"
    assert Named(3) == Named(3)


def test_instances_from_another_process() -> None:
    """Nobody has called the constructor here; equality is that of values."""
    from pybuild.ir.graph import Quant

    made = pickle.dumps([Quant((1.5,)), Quant((1.5,)), Quant((2.5,))])
    code = f"""
import pickle
a, b, c = pickle.loads({made!r})
assert a == b and a != c, (a, b)
assert repr(a) == {repr(Quant((1.5,)))!r}
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_threads_that_come_at_once() -> None:
    """And while the methods are made for another."""
    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):
            cls, gate = _point(records.dataclass), Barrier(4)

            def made(x: int, cls: Any = cls, gate: Barrier = gate) -> Any:
                gate.wait()
                time.sleep(x * 3e-4)
                return cls(x)

            with ThreadPoolExecutor(4) as threads:
                assert [p.x for p in threads.map(made, range(4))] == [0, 1, 2, 3]
    finally:
        sys.setswitchinterval(often)


def test_what_is_loaded_is_not_compiled() -> None:
    """A handful of classes is used while modules load; all others wait."""
    code = """
import dataclasses, sys
import pybuild.cli.work
found = {
    value
    for name, module in list(sys.modules.items()) if name.startswith("pybuild")
    for value in vars(module).values()
    if isinstance(value, type) and "__dataclass_fields__" in vars(value)
}
kinds = [type(vars(each)["__init__"]).__name__ for each in found]
print(kinds.count("_Constructor"), len(kinds))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    waiting, every = map(int, done.stdout.split())
    assert every > 250 and every - waiting < 80, done.stdout
