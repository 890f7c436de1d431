"""How much stack functions need along the deepest chain of calls. Knows no machine:
frames and calls are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pybuild.errors import BuildError
from pybuild.records import dataclass

NO_OBJECT = (
    "unknown: no object, and each compiler has its own frames; "
    "crt bench --on BOARD and crt build --evidence tell it"
)


@dataclass(frozen=True)
class StackFrame:
    """A function of a chain of calls, and bytes of its frame."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Chain:
    """The chain of calls that needs most stack: bytes, and frames from its begin."""

    bytes: int = 0
    frames: tuple[StackFrame, ...] = ()


@dataclass(frozen=True)
class KernelStack:
    """Stack of a model's kernels, from the frame of one on, as its object has them.

    bytes    at most; None: not known
    chain    that needs most, from a kernel on
    outside  functions that kernels call and that are not in the object: theirs is added
             where the firmware is linked, as is that of crt and of the caller
    reason   why it is not known; ""
    """

    bytes: int | None = None
    chain: tuple[StackFrame, ...] = ()
    outside: tuple[str, ...] = ()
    reason: str = NO_OBJECT


NO_STACK = KernelStack()


def deepest(
    starts: Iterable[str],
    frame: Callable[[str], int],
    calls: Callable[[str], Iterable[str]],
) -> Chain:
    """The deepest chain of calls that begins at any of `starts`.

    Errors  BuildError for recursion
    """
    known: dict[str, Chain] = {}

    def chain(name: str, path: tuple[str, ...]) -> Chain:
        if name in path:
            raise BuildError(name, "calls itself: its stack has no bound")
        if name not in known:
            below = [chain(callee, (*path, name)) for callee in sorted(calls(name))]
            most = max(below, key=_bytes, default=Chain())
            own = StackFrame(name, frame(name))
            known[name] = Chain(own.bytes + most.bytes, (own, *most.frames))
        return known[name]

    return max((chain(name, ()) for name in starts), key=_bytes, default=Chain())


def _bytes(chain: Chain) -> int:
    return chain.bytes
