"""Built models that make graph executor modules by name, and that can be exported.

As scripts know the result of relay.build. Knows no file. What runs models is imported
where one is run: `crt build` and `crt inspect` run none.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pybuild.dtype import Array
from pybuild.emit.content import Content
from pybuild.errors import BuildError
from pybuild.host.compiled_model import Compiled, SlotFacts
from pybuild.ir.graph import Graph, Tensor, signature

if TYPE_CHECKING:
    from pybuild.executor.debug import GraphModuleDebug
    from pybuild.executor.instance import AnyDevice
    from pybuild.executor.module import GraphModule
    from pybuild.host.abi import UnknownName
    from pybuild.host.devices import Device
    from pybuild.host.native import Net
    from pybuild.host.ndarray import NDArray
    from pybuild.host.parameter_image import Weights
    from pybuild.plan.plan import Plan

BACKENDS = ("llvm", "c")


class Factory(abc.ABC):
    """A compiled model. Its modules share code, and weights until they are replaced."""

    # what asks for it by name: lib["default"](device)
    mod_name: str
    # whether modules begin with the weights that the model came with
    bound: bool

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The prefix of the library's symbols."""

    @property
    @abc.abstractmethod
    def graph(self) -> Graph:
        """The graph as the user gave it."""

    @property
    @abc.abstractmethod
    def slots(self) -> tuple[SlotFacts, ...]:
        """The parameter slots that an instance binds."""

    @abc.abstractmethod
    def planned(self) -> Plan:
        """The plan that was built, for recording."""

    @abc.abstractmethod
    def code(self, backend: str | None = None) -> Compiled:
        """The compiled code, compiled once."""

    @abc.abstractmethod
    def portable(self) -> bytes:
        """The code as it is exported: LLVM bitcode, or a shared library.

        Errors  BuildError without a compiler
        """

    @abc.abstractmethod
    def image(self, values: Mapping[str, Array] | None = None) -> bytes:
        """All parameters packed, some of them with other values."""

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """The facts that an exported library must hold besides graph, weights and
        code."""

    @abc.abstractmethod
    def retargeted(self, target: str) -> Factory:
        """The same build for another processor."""

    @abc.abstractmethod
    def shipped(self) -> Mapping[str, Content]:
        """The files that a firmware compiles or links: file name -> content."""

    def __repr__(self) -> str:
        graph = self.graph
        ends = map(graph.tensor, graph.inputs), map(graph.tensor, graph.outputs)
        return f"{type(self).__name__}({self.name!r}, {signature(*ends)})"

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled.

        Errors  TypeError: compiled code is in this process
        """
        what = "a library is not pickled, its code is compiled in this process"
        hint = "export_library(path) writes it, pybuild.load_module(path) reads it"
        raise TypeError(f"{what}: {hint}")

    # ---- instances ------------------------------------------------------------

    @functools.cached_property
    def weights(self) -> Weights:
        """The parameters that the model came with, for any number of instances."""
        from pybuild.host.parameter_image import Weights

        return Weights(self.image())

    @functools.cached_property
    def parameters(self) -> Mapping[str, Tensor]:
        """The parameters that kernels read, in the form that users have."""
        graph, read = self.graph, {n for slot in self.slots for n in slot.sources}
        return {name: graph.tensor(name) for name in graph.parameters if name in read}

    def value(self, name: str) -> Array:
        """The value of a parameter in the model file."""
        return self.graph.constants[name]

    def instance(
        self, backend: str | None = None, devices: Sequence[Device] = ()
    ) -> Net:
        """Does the same as host(), with no parameter bound."""
        from pybuild.host.native import Net

        return Net(self.planned, self.code(backend), devices)

    def host(self, backend: str | None = None, devices: Sequence[Device] = ()) -> Net:
        """An instance on this machine, driven through crt.

        backend  "llvm" (no compiler needed), "c" (the generated C, compiled); None: as
                 the library was built for
        devices  of a model for several; (): the CPU does the work of all
        Errors   BuildError where "c" finds no compiler
        """
        net = self.instance(backend, devices)
        if self.slots:
            net.load_params(self.weights)
        return net

    # ---- what scripts for graph executors call --------------------------------

    type_key = "GraphExecutorFactory"

    def __iter__(self) -> Iterator[Any]:
        """Yields the parts for `graph, lib, params = build(...)`."""
        yield from (self.get_graph_json(), self.get_lib(), self.get_params())

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A function that makes modules, by the model's name; or one of these:

        get_graph_json, get_graph_params, debug_create, remove_params
        """
        known: dict[str, Callable[..., Any]] = {
            self.mod_name: self._module,
            "get_graph_json": self.get_graph_json,
            "get_graph_params": self.get_params,
            "debug_create": self._debug,
            "remove_params": self._unbound,
        }
        if name not in known:
            raise _unknown(f"function '{name}'", known)
        return known[name]

    get_function = __getitem__

    def _module(self, *devices: AnyDevice) -> GraphModule:
        from pybuild.executor.module import GraphModule

        return GraphModule.of(self, devices, self.bound)

    def _debug(self, name: str, *devices: AnyDevice) -> GraphModuleDebug:
        from pybuild.executor.debug import GraphModuleDebug

        if name != self.mod_name:
            raise _unknown(f"model '{name}'", [self.mod_name])
        return GraphModuleDebug.of(self, devices, self.bound)

    def _unbound(self) -> Self:
        return dataclasses.replace(self, bound=False)  # type: ignore[type-var]

    def get_graph_json(self) -> str:
        """The graph as the text of a graph JSON, without weights."""
        from pybuild.frontends import graphjson

        return graphjson.dump(self.graph)[0]

    def get_params(self) -> dict[str, NDArray]:
        """Copies of the weights that may be replaced; none after remove_params."""
        from pybuild.host.ndarray import ndarray

        if not self.bound:
            return {}
        return {name: ndarray(self.value(name).copy()) for name in self.parameters}

    def get_lib(self) -> Factory:
        """The code; give it to pybuild.graph_executor.create."""
        return self._unbound()

    def export_library(self, path: str | Path) -> None:
        """Writes graph, weights and code, to be read by pybuild.load_module.

        path  a folder if it ends in / or is there; else a zip file, whatever its name
        """
        from pybuild.executor.archive_write import export

        export({self.mod_name: self}, path)


class Package:
    """Several libraries by name: lib["encoder"](device)."""

    def __init__(self, libraries: Mapping[str, Factory]) -> None:
        self.libraries = dict(libraries)

    def __repr__(self) -> str:
        return f"Package({', '.join(self.libraries)})"

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The function that makes a module of the named model.

        Errors  UnknownName that lists the models
        """
        if name not in self.libraries:
            raise _unknown(f"model '{name}'", self.libraries)
        return self.libraries[name][name]

    get_function = __getitem__

    def export_library(self, path: str | Path) -> None:
        """Writes the package as export_library writes one library; load_module reads it
        as a Package."""
        from pybuild.executor.archive_write import export

        export(self.libraries, path)


def _unknown(what: str, known: Iterable[str]) -> UnknownName:
    from pybuild.host.abi import UnknownName

    return UnknownName(f"{what} is not known; there is {', '.join(map(repr, known))}")


def backend_of(name: str | None, default: str) -> str:
    """The back end of that name.

    Errors  BuildError for a back end that there is not
    """
    chosen = name or default
    if chosen not in BACKENDS:
        what = f"'{chosen}' is not known"
        raise BuildError("--backend", what, f"one of {', '.join(BACKENDS)}")
    return chosen


def described(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The type and shape of each tensor, for facts()."""
    return {t.name: [t.dtype.value, list(t.shape)] for t in tensors.values()}
