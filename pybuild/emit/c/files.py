"""The files of a model itself: all C, or an object and what it leaves to C.

Knows nothing of the tree around them.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.emit.c.constants import weights_file
from pybuild.emit.c.header import header_file
from pybuild.emit.c.model import functions_file, kernels_file, model_file
from pybuild.emit.c.params import params_file
from pybuild.emit.content import Content
from pybuild.emit.kernels.external import sources
from pybuild.emit.tables.device_kernels import apart, file_name
from pybuild.emit.tables.tables import Constant, Tables
from pybuild.targets.llvm import Llvm

# the comment that opens a file of this name
Banner = Callable[[str], str]


def c_files(
    tables: Tables,
    banner: Banner,
    image: bytes | None,
    elsewhere: Constant | None = None,
) -> dict[str, Content]:
    """NAME.h, NAME.c, weights, parameters, kernels of each further device, users'
    functions: name -> text.

    elsewhere  the parameters' image, where another file has it
    """
    name = tables.name
    of_cpu, of_devices = apart(tables)
    own: dict[str, Content] = {
        f"{name}.c": model_file(of_cpu, banner(f"{name}.c")),
        f"{name}_weights.c": weights_file(tables, banner(f"{name}_weights.c")),
    }
    for device, kernels in of_devices.items():
        file = file_name(name, device)
        own[file] = kernels_file(kernels, banner(file))
    return _with_common(tables, banner, image, own, elsewhere)


def object_files(
    tables: Tables, banner: Banner, image: bytes | None, processor: Llvm, optimise: str
) -> dict[str, Content]:
    """NAME.h, NAME.o, its functions, parameters, users' functions: name -> content.

    image  of the parameters: data that others may replace, so it stays C
    """
    from pybuild.emit.llvm.object import object_file

    file = f"{tables.name}_functions.c"
    own: dict[str, Content] = {file: functions_file(tables, banner(file))}
    own[f"{tables.name}.o"] = object_file(tables, processor, optimise)
    return _with_common(tables, banner, image, own)


def _with_common(
    tables: Tables,
    banner: Banner,
    image: bytes | None,
    own: dict[str, Content],
    elsewhere: Constant | None = None,
) -> dict[str, Content]:
    name = tables.name
    made = {f"{name}.h": header_file(tables, banner(f"{name}.h")), **own}
    if image is not None:
        file = f"{name}_params.c"
        made[file] = params_file(tables, image, banner(file), elsewhere)
    taken = (*made, f"{name}_selftest.c")
    return made | sources((func for func, _ in tables.kernels), taken)
