"""Where modules of a test run: on this machine, and on a simulated board."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pybuild
from pybuild import rpc
from pybuild.host.ndarray import Device
from tests.toolchains import require


@pytest.fixture(scope="module", params=["here", "board"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """What create() and lib["default"] take."""
    if request.param == "here":
        yield pybuild.cpu(0)
        return
    require("qemu-system-arm")
    require("arm-none-eabi-gcc")
    with rpc.connect("qemu:mps2-an386") as remote:
        yield remote.cpu(0)
