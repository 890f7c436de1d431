"""The onnx.backend API: ONNX models and single nodes, run on this machine.

onnx.backend.test.BackendTest(pybuild.backend, __name__) is ONNX's own suite.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from pybuild.dtype import Array
from pybuild.errors import BuildError, ValuesNeeded
from pybuild.frontends.onnx import load
from pybuild.library import Library
from pybuild.model import Model

__all__ = ["InC", "InLlvm", "Refused", "Rep", "prepare", "run_model", "run_node",
           "supports_device"]  # fmt: skip


class Refused(BackendIsNotSupposedToImplementIt):
    """A model that cannot be built, and every reason; ONNX's own runner skips it."""


def built(
    model: ModelProto, name: str = "model", values: Mapping[str, Array] | None = None
) -> Library:
    """The planned model, as `crt build` makes it for this machine.

    values   of inputs that are fixed at build time
    Errors   Refused with every finding; ValuesNeeded where values of inputs would help
    """
    data = model.SerializeToString()
    try:
        graph = load(f"{name}.onnx", data, {}, values, roomy=True)
        digest = hashlib.sha256(data).hexdigest()
        found = Model(f"{name}.onnx", graph, "onnx", digest)
        return found.build(name=name, target="host", input="keep", plan="whole")
    except ValuesNeeded:
        raise
    except BuildError as error:
        raise Refused(str(error)) from error


def library_for(
    model: ModelProto, inputs: Mapping[str, Any], name: str = "model"
) -> tuple[Library, tuple[str, ...]]:
    """The library for these inputs, and the names of those whose values it has.

    Errors  Refused
    """
    values: dict[str, Any] = {}
    while True:
        try:
            return built(model, name, values), tuple(sorted(values))
        except ValuesNeeded as error:
            missing = [n for n in error.names if n in inputs and n not in values]
            if not missing:
                raise Refused(str(error)) from error
            values |= {n: np.asarray(inputs[n]) for n in missing}


class Rep(BackendRep):
    """A model that run() computes.

    Where values of inputs decide shapes, run() builds the model for the values it is
    given: on this machine only, as a microcontroller's model has one shape.

    code    "llvm" or "c"
    Errors  Refused for a model that cannot be built whatever the values are
    """

    def __init__(self, model: ModelProto, code: str) -> None:
        self.model, self.code = model, code
        constants = {tensor.name for tensor in model.graph.initializer}
        self.inputs = [v.name for v in model.graph.input if v.name not in constants]
        self.outputs = [v.name for v in model.graph.output]
        self._net: Any = None
        self._steered: dict[str, Any] = {}
        with contextlib.suppress(ValuesNeeded):
            self._net = built(model).host(code)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in the order of the file, also by their names.

        inputs  arrays in the order of the file, by name, or the one that there is
        """
        values = given(self.inputs, inputs)
        same = all(np.array_equal(v, values[n]) for n, v in self._steered.items())
        if self._net is None or not same:
            library, names = library_for(self.model, values)
            self._net = library.host(self.code)
            self._steered = {n: np.array(values[n]) for n in names}
        return outputs_of(self._net, self.outputs, values)


def given(names: Sequence[str], inputs: Any) -> dict[str, Any]:
    """The arguments of run(), by name."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    single = isinstance(inputs, np.ndarray)
    return dict(zip(names, [inputs] if single else inputs, strict=False))


def outputs_of(
    net: Any, names: Sequence[str], inputs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Runs once: every output, in this order, as a named tuple; what may hold less than
    it has room for is as long as it holds."""
    for tensor in net.inputs:
        net.set_input(tensor.name, np.asarray(inputs[tensor.name]))
    net.go()
    bounded = net.plan.graph.bounded
    found = []
    for index, name in enumerate(names):
        value = net.get_output(index)
        if name in bounded:
            count = int(net.get_output(bounded[name].count)[0])
            value = np.take(value, np.arange(count), bounded[name].axis)
        found.append(value)
    return namedtuple("Outputs", names, rename=True)(*found)


class InLlvm(Backend):
    """Machine code from LLVM."""

    code = "llvm"

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> Rep:
        """Builds a model of onnx for the onnx.backend API.

        Errors  Refused for a model that cannot be built
        """
        return Rep(model, cls.code)

    @classmethod
    def run_model(
        cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, Sequence[int]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """outputs_info  (numpy type, shape) of each output; None: they are inferred"""
        model = _model_of(node, inputs, outputs_info, kwargs.pop("opset_version", None))
        return cls.run_model(model, inputs, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"


class InC(InLlvm):
    """The generated C, through the compiler of this machine."""

    code = "c"


def _model_of(
    node: NodeProto,
    inputs: Any,
    outputs_info: Sequence[tuple[Any, Sequence[int]]] | None,
    opset: int | None,
) -> ModelProto:
    names = [name for name in node.input if name]
    values = given(names, inputs)
    boundary = [_value(name, np.asarray(values[name])) for name in dict.fromkeys(names)]
    if outputs_info is None:
        outputs = [helper.make_empty_tensor_value_info(n) for n in node.output if n]
    else:
        outputs = [
            _value(name, np.empty(shape, dtype))
            for name, (dtype, shape) in zip(node.output, outputs_info, strict=True)
        ]
    graph = helper.make_graph([node], "node", boundary, outputs)
    given_opset = [helper.make_opsetid("", opset)] if opset else None
    model = helper.make_model(graph, opset_imports=given_opset)
    if outputs_info is None:
        from onnx.shape_inference import infer_shapes

        model = infer_shapes(model, strict_mode=True)
    return model


def _value(name: str, array: Array) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape)


prepare = InLlvm.prepare
run_model = InLlvm.run_model
run_node = InLlvm.run_node
supports_device = InLlvm.supports_device
