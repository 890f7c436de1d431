"""Sources of a model's instances: a build, or an exported library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pybuild.dtype import Array
from pybuild.emit.content import Content
from pybuild.host.compiled_model import SlotFacts
from pybuild.host.devices import Device
from pybuild.host.native import Net
from pybuild.host.parameter_image import Weights
from pybuild.ir.graph import Tensor
from pybuild.plan.plan import Plan


class Source(Protocol):
    """A model that can be run."""

    @property
    def name(self) -> str: ...
    @property
    def weights(self) -> Weights:
        """The model's original weights, packed once for all instances."""
        ...

    @property
    def slots(self) -> tuple[SlotFacts, ...]: ...
    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """The parameters that users may replace, in the form that users have."""
        ...

    def value(self, name: str) -> Array:
        """The value of a parameter in the model file."""
        ...

    def image(self, values: Mapping[str, Array] | None = None) -> bytes:
        """All parameters packed, some of them with other values."""
        ...

    def instance(
        self, backend: str | None = None, devices: Sequence[Device] = ()
    ) -> Net:
        """An instance with no parameter bound."""
        ...


class Portable(Source, Protocol):
    """A model that can be built again for another processor, and shipped to it."""

    def retargeted(self, target: str) -> Portable: ...

    def planned(self) -> Plan:
        """The plan that was built."""
        ...

    def facts(self) -> dict[str, Any]:
        """Its options among others."""
        ...

    def shipped(self) -> Mapping[str, Content]:
        """The files that a firmware compiles or links: file name -> content."""
        ...
