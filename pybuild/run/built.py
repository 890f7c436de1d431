"""What check and bench need of a build; model.py's Library is one."""

from __future__ import annotations

from typing import Protocol

from pybuild.package.report import Report
from pybuild.plan.plan import Plan
from pybuild.run.native import Net


class Library(Protocol):
    """A planned model: figures, and instances on this machine."""

    @property
    def plan(self) -> Plan: ...

    @property
    def report(self) -> Report: ...

    def host(self, backend: str = "llvm") -> Net:
        """An instance; BuildError where the back end cannot work here."""
        ...
