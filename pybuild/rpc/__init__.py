"""Boards as devices: connect("qemu:mps2-an386", library), then remote.device(0).

What goes over the line is in docs/rpc-protocol.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pybuild.rpc.address import connect
    from pybuild.rpc.line import RemoteError
    from pybuild.rpc.link import BoardReset, RemoteTimeout
    from pybuild.rpc.remote import Remote, content_of

# imported when first used: graph executors need no simulator
_LATE = {
    "BoardReset": "link",
    "Remote": "remote",
    "RemoteError": "line",
    "RemoteTimeout": "link",
    "connect": "address",
    "content_of": "remote",
}
__all__ = [
    "BoardReset", "Remote", "RemoteError", "RemoteTimeout", "connect", "content_of",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(f"pybuild.rpc.{_LATE[name]}"), name)
    raise AttributeError(f"module 'pybuild.rpc' has no attribute '{name}'")
