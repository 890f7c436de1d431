"""Errors under the names of TVM's; what is raised is of pybuild's own kinds."""

from __future__ import annotations

from pybuild.rpc.line import RemoteError as RPCError

__all__ = ["RPCError", "TVMError"]

# the base of CRT_ERR_..., UnknownName and RemoteError
TVMError = RuntimeError
