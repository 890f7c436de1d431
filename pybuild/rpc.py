"""Boards as devices: connect("qemu:mps2-an386", library), then remote.device(0).

What goes over the line is in docs/rpc-protocol.md.
"""

from __future__ import annotations

from pybuild.run.rpc.connect import connect
from pybuild.run.rpc.line import RemoteError
from pybuild.run.rpc.link import BoardReset, RemoteTimeout
from pybuild.run.rpc.remote import Remote, content_of

__all__ = [
    "BoardReset", "Remote", "RemoteError", "RemoteTimeout", "connect", "content_of",
]  # fmt: skip
