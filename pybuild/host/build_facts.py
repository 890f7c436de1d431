"""The facts of a build that check and bench need; model.py's Library has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pybuild.emit.content import Content
from pybuild.emit.tables.tables import Tables
from pybuild.host.native import Net
from pybuild.ir.graph import Graph
from pybuild.options.table import BuildOptions
from pybuild.package.curve import Point
from pybuild.package.report import Report
from pybuild.plan.plan import Plan
from pybuild.plan.request import Planner, Planners
from pybuild.select.choose import Options
from pybuild.targets.llvm import Llvm


class Library(Protocol):
    """A planned model: figures, C files, and instances on this machine."""

    @property
    def plan(self) -> Plan: ...

    @property
    def tables(self) -> Tables: ...

    @property
    def report(self) -> Report: ...

    @property
    def processor(self) -> Llvm | None:
        """The processor that an object is for; None: the build is C."""
        ...

    def sources(self) -> Mapping[str, str]:
        """The model's own header and C files: file name -> text."""
        ...

    def compiled(self) -> Mapping[str, Content]:
        """The object, the header and the little C beside it."""
        ...

    def of_window(self) -> Graph:
        """The final graph of the same build of a whole window, of a stream."""
        ...

    @property
    def options(self) -> BuildOptions: ...

    @property
    def graph(self) -> Graph:
        """The graph as the file gives it."""
        ...

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> Any: ...

    @property
    def planner(self) -> Planner | None: ...

    @property
    def planners(self) -> Planners | None: ...

    @property
    def kernels(self) -> Options:
        """The kernels that could compute each layer."""
        ...

    def again(self, **changed: Any) -> Library:
        """The same build with some options changed."""
        ...

    def ram_curve(self) -> tuple[Point, ...]:
        """Plans from the smallest to the fastest."""
        ...

    def least_arena(self) -> int | None:
        """Bytes of the smallest plan by rows; None: there is no choice."""
        ...

    def files(self) -> Mapping[str, Content]:
        """The whole tree that a build writes: path -> content."""
        ...

    def host(self, backend: str = "llvm") -> Net:
        """An instance; BuildError where the back end cannot work here."""
        ...
