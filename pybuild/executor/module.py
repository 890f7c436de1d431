"""Graph executor modules: set, run, get, by name or number; weights late or shared.

What users of TVM's graph_executor know, on a Net. Knows no file and no compiler.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.executor.inputs import Inputs
from pybuild.executor.instance import AnyDevice, local, must_be_together, new_instance
from pybuild.executor.parameters import Parameters
from pybuild.executor.timed import Timed
from pybuild.host.abi import UnknownName, failure
from pybuild.host.devices import aligned
from pybuild.host.locks import as_it_is, both, one_at_a_time
from pybuild.host.named_tensors import Key, number_of
from pybuild.host.ndarray import Device, NDArray, cpu, ndarray
from pybuild.host.source import Source
from pybuild.host.turn import new_turn
from pybuild.ir.graph import Tensor, signature
from pybuild.params.blob import blob_names, is_blob
from pybuild.params.files import read_arrays
from pybuild.params.image_read import is_image, read_image
from pybuild.rpc.net import RemoteNet

_UNBOUND = -14
_FUNCTIONS = (
    "set_input", "set_input_zero_copy", "set_output_zero_copy", "set_shared_input",
    "get_input", "get_output", "get_num_inputs", "get_num_outputs", "get_num_params",
    "get_input_index", "get_input_info", "get_output_info", "run", "run_from_inputs",
    "load_params", "share_params", "setup_operators",
)  # fmt: skip


@one_at_a_time
class GraphModule(Timed):
    """One instance of a model.

    Inputs have numbers from 0 on; parameters, which users may replace, the next ones.

    Thread  any, one after the other: each call holds `lock`; `with module.lock:` holds
            it for calls that belong together. run_from_inputs() is one call
    Errors  UnknownName listing the known names; ValueError for another shape or type;
            CRT_ERR_... as named in crt/error.h
    """

    def __init__(self, module: GraphModule) -> None:
        self.__dict__ = module.__dict__  # the same instance

    @classmethod
    def of(
        cls, source: Source, devices: Sequence[AnyDevice], bound: bool
    ) -> GraphModule:
        """Makes an instance; bound: with the weights of the model."""
        made = cls.__new__(cls)
        made._start(source, devices, bound)
        return made

    def _start(self, source: Source, devices: Sequence[AnyDevice], bound: bool) -> None:
        named = (one for one in devices if isinstance(one, Device))
        self.devices = tuple(named) or (cpu(),)
        self.source, self.net = new_instance(source, devices)
        self.inputs = Inputs(self.net)
        self.parameters = Parameters(self.source, self.net)
        if bound:
            self.parameters.reset()

    def __repr__(self) -> str:
        ends = signature(self.net.inputs, self.net.results)
        return f"{type(self).__name__}({ends}, on {self.devices[0]})"

    @property
    def lock(self) -> threading.RLock:
        """The lock of the instance; on a board, that of the session."""
        return self.net.lock

    @property
    def module(self) -> GraphModule:
        """The module itself, for scripts that ask for the module behind it."""
        return self

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The function of that name, as module["run"]; or raises UnknownName."""
        if name not in _FUNCTIONS:
            known = ", ".join(_FUNCTIONS)
            raise UnknownName(f"function '{name}' is not known; there is {known}")
        found: Callable[..., Any] = getattr(self, name)
        return found

    get_function = __getitem__

    @property
    def type_key(self) -> str:
        """ "rpc" for a board, else "GraphExecutor", as in TVM."""
        return "rpc" if isinstance(self.net, RemoteNet) else "GraphExecutor"

    def close(self) -> None:
        """Gives memory and parameters back, but for what other modules share of it;
        whatever needs them is then a ValueError."""
        self.net.close()

    # ---- inputs ---------------------------------------------------------------

    def set_input(
        self, /, key: Key | None = None, value: Any = None, copy: bool = True,
        **more: Any,
    ) -> None:  # fmt: skip
        """Gives one input or parameter, or several by keyword.

        copy  False: it is read where it lies, see set_input_zero_copy()
        """
        first: dict[Any, Any] = {} if key is None else {key: value}
        self._give({**first, **more}, copy)

    def _give(self, given: Mapping[Any, Any], copy: bool = True) -> None:
        """Inputs of any names, also such as parameters of functions here have."""
        values = {self._name(key): value for key, value in given.items()}
        if not copy:
            self._bind(values)
            return
        weights = {n: v for n, v in values.items() if n not in self.inputs.tensors}
        own = {n: v for n, v in values.items() if n in self.inputs.tensors}
        self.inputs.must_fit(own)
        if weights:
            self.parameters.give(weights)
        self.inputs.give(own)

    def set_input_zero_copy(self, /, key: Key, value: Any = None, **more: Any) -> None:
        """Lets runs read an input where it lies until it is set again; None: home.

        Owner   the array is kept
        Errors  ValueError for another type, shape or order, or an input on a device;
                CRT_ERR_ALIGN
        """
        more = {self._name(name): array for name, array in more.items()}
        self._bind({self._name(key): value, **more})

    def _bind(self, values: Mapping[str, Any]) -> None:
        for name, array in values.items():
            if name in self.inputs.tensors:
                self.inputs.bind(name, array)
            else:
                self.parameters.bind_in_place(name, array)

    @as_it_is
    def set_shared_input(
        self, key: Key, other: Array | GraphModule, other_key: Key | None = None
    ) -> None:
        """Reads an input from an array, or from where another module has a tensor, also
        when that is bound elsewhere.

        other_key  an output of the other module, else an input of it
        Owner      the other module is kept
        """
        if not isinstance(other, GraphModule):
            if other_key is not None:
                raise ValueError("'other_key' is of a module, 'other' is none")
            self.set_input_zero_copy(key, other)
            return
        there = 0 if other_key is None else other_key
        name = self._name(key)
        if name not in self.inputs.tensors:
            raise ValueError(f"'{name}' is a parameter: share_params shares it")
        with both(self.lock, other.lock):
            self.inputs.follow(name, other.inputs, there)

    def get_input(self, key: Key, out: Any = None) -> Any:
        """The memory of an input, to be filled: it counts as given. Of a parameter, a
        copy that cannot be written. With `out`, that array.
        """
        name = self._name(key)
        if name in self.inputs.tensors:
            return handed(self.inputs.memory(name), out)
        value = self.parameters.value(name).view()
        value.flags.writeable = False
        return handed(value, out)

    # ---- runs and outputs -----------------------------------------------------

    def set_output_zero_copy(self, key: Key, value: Any) -> None:
        """Lets runs write an output where the array is; None: home.

        Owner   the array is kept
        Errors  ValueError for another type, shape or order; CRT_ERR_ALIGN
        """
        self.net.bind_output(key, value)

    def setup_operators(self) -> None:
        """Checks once that everything is bound.
        Errors  CRT_ERR_UNBOUND naming it"""
        self._ready()
        self.net.setup()

    @as_it_is
    def run(self, /, **inputs: Any) -> None:
        """Sets the given inputs, then runs once."""
        with self.net.lock:
            if inputs:
                self._give(inputs)
            self._ready()
            self.net.go()

    def run_from_inputs(self, /, *given: Any) -> list[NDArray]:
        """Device type and number, of where outputs are wanted (the CPU), then names and
        values; copies of all outputs.
        """
        if len(given) % 2:
            raise ValueError("names and values must come in pairs, after the device")
        if tuple(given[:2]) != (cpu().device_type, 0):
            raise ValueError(f"outputs are copied to cpu(0), not to device {given[:2]}")
        pairs = given[2:]
        self._give(dict(zip(pairs[::2], pairs[1::2], strict=True)))
        self.run()
        return [self.get_output(i).copy() for i in range(self.get_num_outputs())]

    def get_output(self, key: Key, out: Any = None) -> Any:
        """The memory of an output, which the next run writes over. With `out`, that
        array, filled.

        Errors  CRT_ERR_NO_OUTPUT before a run
        """
        return handed(self.net.borrow_output(key), out)

    def debug_get_output(self, node: Key, out: Any = None) -> Any:
        """Raises NotImplementedError: the debug executor has it."""
        hint = "create the module with pybuild.debug_executor.create"
        raise NotImplementedError(f"intermediate values are not kept: {hint}")

    # ---- what there is --------------------------------------------------------

    def get_num_inputs(self) -> int:
        """The number of inputs, without parameters."""
        return len(self.inputs.tensors)

    def get_num_params(self) -> int:
        """The number of weights that may be set; constants do not count."""
        return len(self.parameters.tensors)

    def get_num_outputs(self) -> int:
        """The number of outputs of a run."""
        return len(self.net.results)

    def get_input_index(self, name: str) -> int:
        """The number of an input or a parameter; -1 if none has that name."""
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is not a name of an input")
        names = self._names()
        return names.index(name) if name in names else -1

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and types of the inputs, without what load_params has set."""
        there = self.inputs.tensors.values()
        return _info([t for t in there if t.name not in self.inputs.loaded])

    def get_output_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and types of the outputs, by name."""
        return _info(self.net.results)

    def _names(self) -> list[str]:
        """The names of everything that can be set, in the order of their numbers."""
        return [*self.inputs.tensors, *self.parameters.tensors]

    def _name(self, key: Key) -> str:
        names, number = self._names(), number_of(key)
        if number is not None:
            if not 0 <= number < len(names):
                raise UnknownName(f"input {number}: there are {len(names)}")
            return names[number]
        if not isinstance(key, str) or key not in names:
            known = ", ".join(f"'{name}'" for name in names) or "none"
            raise UnknownName(f"input '{key}' is not known; there is {known}")
        return key

    # ---- weights --------------------------------------------------------------

    def load_params(self, data: bytes | bytearray) -> None:
        """Takes the parameters, and inputs, that a parameter file has; others stay.

        data    TVM's blob, .npz, or our image: bound as it is, if packed for this model
        Errors  BuildError, CRT_ERR_... for damaged bytes; ValueError for another shape
        """
        if self.parameters.load_image(bytes(data)):
            return
        values = read_arrays(bytes(data), "parameters")
        if is_image(bytes(data)) and not values.keys() & {*self._names()}:
            known = ", ".join(f"'{name}'" for name in self._names()) or "none"
            has = ", ".join(f"'{name}'" for name in values) or "none"
            raise UnknownName(f"the image has {has}, the model {known}")
        self.parameters.give(_among(values, self.parameters.tensors))
        given = _among(values, self.inputs.tensors)
        self.inputs.give(given)
        self.inputs.loaded |= given.keys()

    @as_it_is
    def share_params(
        self, other: GraphModule, what: bytes | Sequence[str] | None = None
    ) -> None:
        """Makes weights those of another module, of whatever model; none is copied.

        what    names, or a parameter file, of which only names are read (others than
                ours are passed over); None: all parameters, and what load_params or
                share_params has given the other
        Owner   the other module may be gone first
        Errors  UnknownName; CRT_ERR_LAYOUT, CRT_ERR_SHAPE, CRT_ERR_UNBOUND, ...; then
                nothing has changed
        """
        with both(self.lock, other.lock):
            self._share(other, what)

    def _share(self, other: GraphModule, what: bytes | Sequence[str] | None) -> None:
        must_be_together(self.net, other.net)
        names = self._shared_names(other, what)
        mine = [n for n in names if n in self.inputs.tensors]
        shared = self.parameters.matched(
            other.parameters, [n for n in names if n not in self.inputs.tensors]
        )
        self.inputs.share(other.inputs, mine)
        self.parameters.share(other.parameters, shared)

    def _shared_names(
        self, other: GraphModule, what: bytes | Sequence[str] | None
    ) -> Sequence[str]:
        if what is None:
            loaded = other.inputs.loaded & self.inputs.tensors.keys()
            names = [*sorted(loaded), *self.parameters.tensors]
            if not names:
                raise failure(_UNBOUND, "the other module has no parameters to share")
            return names
        if not isinstance(what, (bytes, bytearray)):
            return [self._name(name) for name in what]
        known = {*self._names()}
        return [name for name in _names_in(bytes(what)) if name in known]

    def _ready(self) -> None:
        self.parameters.bind()
        self.inputs.refresh()


def setup_shared_storage(modules: Sequence[GraphModule], wait: float = 0) -> int:
    """Lets modules run in turn in one storage, sized for the largest; its bytes.

    Inputs that were set and arrays that were bound are forgotten.

    wait    seconds in which a call waits for another thread's run; 0: CRT_ERR_BUSY

    Errors  ValueError for memory of devices; later, CRT_ERR_BUSY for a run while
            another is in the middle of one
    """
    nets = [local(module.net) for module in modules]
    if any(any(net.region_devices) for net in nets):
        raise ValueError("the memory of devices is not shared")
    sizes = [net.region_bytes for net in nets]
    regions = max(map(len, sizes), default=0)
    memory = [
        aligned(max(size[i] for size in sizes if i < len(size))) for i in range(regions)
    ]
    turn = new_turn(wait)
    for net, size in zip(nets, sizes, strict=True):
        net.use_memory(memory[: len(size)], turn)
    for module in modules:
        module.inputs.forget()
    return sum(piece.nbytes for piece in memory)


def handed(array: Array, out: Any) -> Any:
    """The array itself, or `out` filled with it."""
    if out is None:
        return ndarray(array)
    if out.shape != array.shape or out.dtype != array.dtype:
        want = f"{array.dtype.name}{list(array.shape)}"
        raise ValueError(f"'out' is {out.dtype}{list(out.shape)}, not {want}")
    np.copyto(out, array)
    return out


def _info(
    tensors: Sequence[Tensor],
) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    return shapes, {tensor.name: tensor.dtype.value for tensor in tensors}


def _among(values: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names}


def _names_in(data: bytes) -> list[str]:
    """The names in a parameter file; payloads are not read."""
    if is_blob(data):
        return blob_names(data, "parameters")
    if is_image(data):
        return [entry.name for entry in read_image(data, "parameters").entries]
    return list(read_arrays(data, "parameters"))
