"""Compares firmware at the end of a line with this machine on the same samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from pybuild.boards.check import against_host, on_host
from pybuild.host.source import Portable
from pybuild.progress import Progress, silent
from pybuild.rpc.address import connect
from pybuild.verify.check import CheckResult
from pybuild.verify.own_samples import inputs_of
from pybuild.verify.samples import samples

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library
    from pybuild.quantisation.samples import Samples


def check_remote(
    where: str,
    library: Library,
    path: str | Path,
    count: int = 20,
    seed: int = 0,
    own: Samples | None = None,
    progress: Progress = silent,
    key_file: str | None = None,
) -> CheckResult:
    """Compares seeded inputs, or the user's own, with the host's LLVM back end.

    where, key_file  as in pybuild.rpc.connect: serial:/dev/ttyUSB0,921600, tcp:...
    Errors  BuildError; RemoteError where the line or the board is not there
    """
    with connect(where, cast(Portable, library), key_file=key_file) as remote:
        made, net = remote.instance(cast(Portable, library))
        if made.slots:
            net.load_params(made.weights)
        there = cast("Library", made)
        graph = there.plan.graph
        given = inputs_of(own) or [s.inputs for s in samples(graph, count, seed)]
        found = []
        for index, inputs in enumerate(given):
            if graph.state:
                net.reset()
            found.append(net.run(**inputs))
            progress(index + 1, len(given))
        wanted = on_host(there, given, per_layer=False)
    return against_host(there, path, where, given, wanted, found, own)
