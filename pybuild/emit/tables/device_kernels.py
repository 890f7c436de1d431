"""Kernels that only one further device runs: in a C file of their own, so that they
are compiled for that device's core. Tables in, tables out.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.emit.tables.tables import Kernels, Tables, User
from pybuild.ir.loop import Func
from pybuild.kernels.base.external import External


def apart(tables: Tables) -> tuple[Tables, dict[int, Kernels]]:
    """The tables without these kernels, and the kernels by device.

    What the CPU or two devices run stays; so do users' functions, which have files.
    """
    users: dict[str, set[int]] = {}
    for step in tables.steps:
        users.setdefault(step.kernel, set()).add(step.device)
    moved: dict[str, str] = {}
    found: dict[int, list[tuple[Func, tuple[User, ...]]]] = {}
    for func, layers in tables.kernels:
        devices = users.get(func.name, {0})
        if isinstance(func, External) or len(devices) > 1 or 0 in devices:
            continue
        moved[func.name] = f"{tables.name}_{func.name}"  # other models have such, too
        (device,) = devices
        named = replace(func, name=moved[func.name])
        found.setdefault(device, []).append((named, layers))
    steps = (replace(s, kernel=moved.get(s.kernel, s.kernel)) for s in tables.steps)
    kernels = tuple(k for k in tables.kernels if k[0].name not in moved)
    made = {device: tuple(found[device]) for device in sorted(found)}
    return replace(tables, steps=tuple(steps), kernels=kernels), made


def file_name(name: str, device: int) -> str:
    return f"{name}_device_{device}.c"
