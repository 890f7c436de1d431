"""`crt run`: one inference a sample, here or on a board; outputs for people, as JSON or
as a file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pybuild
from pybuild.cli.boards import (
    HOST,
    device_of,
    own_samples,
    say_target,
    show_fit,
)
from pybuild.cli.models import built
from pybuild.cli.output.progress import working
from pybuild.dtype import Array
from pybuild.files.say import say
from pybuild.ir.graph import Tensor

OK = 0
SHOWN = 12  # values of an output that are printed
MOST_CLASSES = 1000  # of a vector that is taken for scores

Outcome = tuple[int, dict[str, Any]]


def run(args: argparse.Namespace) -> Outcome:
    """Runs the model once for each sample, on this machine or on a board."""
    library = built(args, args.model)
    given = _inputs(args, library)
    where: dict[str, Any] = {"board": HOST}
    say_target(args)
    if args.on == HOST:
        from pybuild.host.lazy_buffers import bind_lazy

        net = bind_lazy(library.host("llvm"))
        found = [net(**one) for one in given]
        net.close()
    else:
        from pybuild.boards.device import program_of, run_program
        from pybuild.package.curve import fit_facts

        device = device_of(args)
        with working(f"running {Path(args.model).name} on {device.board.name}"):
            program = program_of(device, library)
            found = run_program(device, program, given)
        where = device.to_json()
        if program.fit:
            where.update(fit_facts(program.fit))
            if not args.json:
                show_fit(program.fit)
    outputs = found[0]
    if len(found) > 1:
        where["samples"] = len(found)
        outputs = {name: np.stack([one[name] for one in found]) for name in outputs}
    if args.out is not None:
        from pybuild.package.folder import write_file
        from pybuild.params.files import write_arrays

        write_file(Path(args.out), write_arrays(outputs, "outputs.npz"))
    if not args.json:
        if args.data is None:
            say("input  random values, always the same; --data FILE takes your own")
        for line in _lines(library, outputs, found):
            say(line)
    where["random_input"] = args.data is None
    plain = {
        name: {
            "dtype": value.dtype.name,
            "shape": list(value.shape),
            "values": value.reshape(-1).tolist(),
        }
        for name, value in outputs.items()
    }
    return OK, {**where, "model": library.report.name, "outputs": plain}


def _lines(
    library: pybuild.Library,
    outputs: Mapping[str, Array],
    found: Sequence[Mapping[str, Array]],
) -> Iterator[str]:
    """Each output as it is stored and in real numbers; the class of a vector."""
    graph = library.plan.graph
    inputs = {graph.tensor(name).shape for name in graph.inputs}
    for name, value in outputs.items():
        tensor = graph.tensor(name)
        yield f"{name}: {value.dtype.name}{list(value.shape)} {_numbers(value)}"
        if _is_scaled(tensor):
            yield f"real   {_numbers(_real(value, tensor))}"
        size = tensor.size
        is_vector = max(tensor.shape, default=1) == size
        if is_vector and 2 <= size <= MOST_CLASSES and tensor.shape not in inputs:
            yield _classes([one[name].reshape(-1) for one in found], tensor)


def _numbers(value: Array) -> str:
    flat = value.reshape(-1)
    more = " ..." if flat.size > SHOWN else ""
    return " ".join(f"{x:g}" for x in flat[:SHOWN].tolist()) + more


def _is_scaled(tensor: Tensor) -> bool:
    """True of integers that stand for real numbers by one scale."""
    quant = tensor.quant
    return not tensor.dtype.is_float and quant is not None and len(quant.scale) == 1


def _real(value: Array, tensor: Tensor) -> Array:
    return tensor.scale * (value.astype(np.float64) - tensor.zero_point)


def _classes(values: Sequence[Array], tensor: Tensor) -> str:
    """The place of the greatest value: of one sample with that value."""
    tops = [int(value.argmax()) for value in values]
    if len(tops) > 1:
        more = " ..." if len(tops) > SHOWN else ""
        return f"top    of each sample: {' '.join(map(str, tops[:SHOWN]))}{more}"
    (value,) = values
    value = _real(value, tensor) if _is_scaled(tensor) else value
    return f"top    class {tops[0]} of {tensor.size}: {value[tops[0]]:g}"


def _inputs(
    args: argparse.Namespace, library: pybuild.Library
) -> Sequence[Mapping[str, Array]]:
    """The samples of the file, or the seeded one of the self-test.

    Errors  BuildError with everything that is wrong
    """
    from pybuild.verify.own_samples import inputs_of
    from pybuild.verify.samples import example_inputs

    if args.data is None:
        return [example_inputs(library.plan.graph)]
    return inputs_of(own_samples(args, library))
