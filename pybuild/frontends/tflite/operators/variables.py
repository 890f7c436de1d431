"""Variables of a model: VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE, CALL_ONCE, and
tensors that an operator keeps for itself. A variable that is read before it is assigned
is state. Its initial value is what a CALL_ONCE subgraph assigns, otherwise the real
number 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pybuild.errors import BuildError
from pybuild.frontends.tflite.draft.builder import Builder, Call
from pybuild.frontends.tflite.draft.variable import Variable
from pybuild.frontends.tflite.reader.flat import FlatOperator, guarded
from pybuild.ir.graph import State, Tensor


def _of(call: Call) -> Variable:
    """Return the variable of the handle that is the first input."""
    found = call.builder.handles.get(call.index(0))
    if found is None:
        name = call.builder.names[call.index(0)]
        raise call.error(f"'{name}' is not a handle of a variable")
    return call.builder.variables.setdefault(found, Variable())


def handle(call: Call) -> None:
    call.builder.handles[call.flat.outputs[0]] = _title(call.builder, call.flat)


def _title(builder: Builder, flat: FlatOperator) -> str:
    """Return the name that distinguishes a variable from others."""
    options = flat.options
    if options is None or not hasattr(options, "SharedName"):
        return ""
    names = (
        guarded(builder.source, f) for f in (options.Container, options.SharedName)
    )
    texts = ((name or b"").decode("utf-8", "replace") for name in names)
    return "/".join(text for text in texts if text)


def read(call: Call) -> None:
    variable, builder = _of(call), call.builder
    tensor = call.output(call.declared())
    if variable.now is None:
        name = builder.fresh(builder.handles[call.index(0)] or "variable")
        variable.state = variable.now = builder.add(replace(tensor, name=name))
    have = variable.now
    if (have.shape, have.dtype, have.quant) != (
        tensor.shape,
        tensor.dtype,
        tensor.quant,
    ):
        what = f"reads {tensor.dtype.value}{list(tensor.shape)}, the variable holds "
        what += f"{have.dtype.value}{list(have.shape)}"
        raise call.error(what, "of one type, shape and scale")
    call.emit("copy", (have.name,), {})


def assign(call: Call) -> None:
    variable, value = _of(call), call.tensor(1)
    variable.now = value


def own(call: Call, position: int) -> Tensor:
    """Return the value of an operator's variable tensor; `keep` sets its next value.

    Errors  BuildError if it is not a variable, or in a called subgraph
    """
    builder, index = call.builder, call.index(position)
    flat, name = builder.model.tensors[index], builder.names[index]
    if not flat.variable:
        raise call.error(f"'{name}' is not a variable")
    if builder.inside:
        what = "keeps state in a subgraph that is called"
        raise call.error(what, "move it out of IF and WHILE")
    builder.kept.add(index)
    variable = builder.variables.setdefault(f"tensor {index}", Variable())
    if variable.now is None:
        state = builder.add(builder.computed(index, flat.shape))
        variable.state = variable.now = state
    return variable.now


def keep(call: Call, position: int, value: Tensor) -> None:
    """Set the value of an operator's variable tensor after the run."""
    call.builder.variables[f"tensor {call.index(position)}"].now = value


def call_once(call: Call) -> None:
    """Take the constants that a subgraph assigns as initial values."""
    graph = call.subgraph("InitSubgraphIndex")
    inside = Builder(call.builder.source, "", graph)
    handles: dict[int, str] = {}
    for flat in graph.operators:
        if flat.code == "VAR_HANDLE" and flat.outputs:
            handles[flat.outputs[0]] = _title(inside, flat)
        elif flat.code == "ASSIGN_VARIABLE" and len(flat.inputs) == 2:
            to, value = flat.inputs
            known = 0 <= value < len(graph.tensors) and inside.is_constant(value)
            if to not in handles or not known:
                raise call.error(
                    "assigns something other than a constant to a variable"
                )
            found = call.builder.variables.setdefault(handles[to], Variable())
            found.initial = inside.raw_constant(value)
        else:
            what = f"its subgraph has an operator {flat.code}"
            hint = "only constants can be assigned there"
            raise call.error(what, hint)


def state_of(builder: Builder) -> dict[str, State]:
    """Return the variables that are state; one that is never assigned is a constant."""
    found = {}
    for variable in builder.variables.values():
        if variable.state is None or variable.now is None:
            continue
        tensor = variable.state
        initial = variable.initial
        if initial is None:
            zero = tensor.quant.zero_point[0] if tensor.quant else 0
            initial = np.full(tensor.shape, zero, tensor.dtype.numpy)
        if initial.shape != tensor.shape or initial.dtype != tensor.dtype.numpy:
            what = f"variable '{tensor.name}' begins as {initial.dtype.name}"
            what += f"{list(initial.shape)}, it is "
            what += f"{tensor.dtype.value}{list(tensor.shape)}"
            raise BuildError(builder.source, what)
        if variable.now is tensor:
            builder.constants[tensor.name] = initial
        else:
            found[tensor.name] = State(variable.now.name, initial)
    return found


VARIABLES: dict[str, Callable[[Call], None]] = {
    "ASSIGN_VARIABLE": assign,
    "CALL_ONCE": call_once,
    "READ_VARIABLE": read,
    "VAR_HANDLE": handle,
}
# have no output
SILENT = ("ASSIGN_VARIABLE", "CALL_ONCE")
