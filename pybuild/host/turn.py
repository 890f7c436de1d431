"""Memory that instances use in turn: struct crt_turn, and what waits for it."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from pybuild.host.abi import ffi

# what C points to, as long as the turn is there
_KEPT: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def new_turn(wait: float = 0) -> Any:
    """A `struct crt_turn *`.

    wait    seconds in which a call waits for a run of another thread; 0: none does
    Errors  ValueError for less than no time
    """
    turn = ffi().new("struct crt_turn *")
    if wait < 0:
        raise ValueError(f"wait is a number of seconds, not {wait}")
    if wait == 0:
        return turn
    freed = threading.Event()

    def change(_: Any, is_taken: int) -> int:
        """Whoever clears it looks at the memory again: no end is missed."""
        if not is_taken:
            freed.set()
        elif not freed.wait(wait):
            return 1
        else:
            freed.clear()
        return 0

    turn.wait = call = ffi().callback("int(struct crt_turn *, int)", change, error=1)
    _KEPT[turn] = call
    return turn
