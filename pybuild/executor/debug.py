"""Graph executor modules that show each layer: its output and its time.

Rows are taken as they are written, so that memory may be used again at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.executor.dump import (
    GRAPH_FILE,
    TRACE_FILE,
    DebugResult,
    Folder,
    debug_nodes,
    functions_of,
    graph_dump,
    key_of,
    trace,
)
from pybuild.executor.instance import AnyDevice, recorded, stage_times, step_time
from pybuild.executor.module import GraphModule, handed
from pybuild.executor.profile import Report, profile_report
from pybuild.host.abi import UnknownName
from pybuild.host.locks import one_at_a_time
from pybuild.host.named_tensors import Key, number_of
from pybuild.host.ndarray import Device
from pybuild.host.source import Source
from pybuild.host.timing import BenchmarkResult, Timing

_WARM_UP = 3


@one_at_a_time
class GraphModuleDebug(GraphModule):
    """Nodes are numbered: inputs, parameters, then layers as they run.

    A layer is what was built: activations and the like are part of the layer before.
    """

    def __init__(
        self,
        module: GraphModule,
        device: AnyDevice | Sequence[AnyDevice],
        graph_json_str: str,
        dump_root: str | Path | None = None,
    ) -> None:
        """The same instance, with its layers, of lib["debug_create"]("default", device)
        or of any module.

        Errors  ValueError for a device that it is not on, or no graph
        """
        super().__init__(module)
        for one in device if isinstance(device, Sequence) else [device]:
            if isinstance(one, Device):
                self._must_be_on(one)
        functions = functions_of(graph_json_str)
        if "folder" in self.__dict__:
            self.folder.remove()
        self._watch(dump_root, functions)

    @classmethod
    def of(
        cls,
        source: Source,
        devices: Sequence[AnyDevice],
        bound: bool,
        dump_root: str | Path | None = None,
        functions: Mapping[str, str] = MappingProxyType({}),
    ) -> GraphModuleDebug:
        """functions: that nodes of a graph JSON call, by the node's name"""
        made = cls.__new__(cls)
        made._start(source, devices, bound)
        made._watch(dump_root, functions)
        return made

    def _watch(
        self, dump_root: str | Path | None, functions: Mapping[str, str]
    ) -> None:
        plan = self.net.plan
        steps = {o: i for i, s in enumerate(plan.steps) for o in s.node.outputs[:1]}
        given = (*self.net.inputs, *self.parameters.tensors.values())
        self.nodes = debug_nodes(plan.graph, given, steps, functions)
        self.debug_datum = DebugResult(self.nodes)
        stages = self.net.stage_steps
        self._stage_of = {step: s for s, steps in enumerate(stages) for step in steps}
        self._values: dict[str, Array] = {}
        self._executed = -1
        self.folder = Folder(dump_root, self.devices[0])
        heads = [[*self._maker(name), 0] for name in plan.graph.outputs]
        dump = graph_dump(self.nodes, len(given), heads)
        self.folder.write(GRAPH_FILE, dump)

    @property
    def _dump_path(self) -> str:
        """The folder with the files; scripts for TVM use this name."""
        return str(self.folder.path)

    def _maker(self, tensor: str) -> tuple[int, int]:
        for index, node in enumerate(self.nodes):
            for output, made in enumerate(node.outputs):
                if made.name == tensor:
                    return index, output
        raise UnknownName(f"tensor '{tensor}' is made by no node")

    # ---- runs -----------------------------------------------------------------

    def run(
        self,
        /,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 1,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        sort_by_time: bool = True,
        **inputs: Any,
    ) -> None:
        """Times every layer, takes every output, writes the files, prints the table."""
        if inputs:
            self._give(inputs)
        how = Timing(
            number,
            repeat,
            min_repeat_ms,
            limit_zero_time_iterations,
            cooldown_interval_ms,
            repeats_to_cooldown,
        )
        again = self.inputs.again()
        times = self._times(how)
        again()
        self._take()
        self.debug_datum.times, self.debug_datum.tensors = times, self.tensors()
        self.folder.write_tensors(self.debug_datum.tensors)
        self.folder.write(TRACE_FILE, trace(self.nodes, times))
        self.debug_datum.display_debug_result(sort_by_time)

    def _times(self, how: Timing) -> list[list[float]]:
        """The times of each node; the steps of one stage share its time."""
        self._ready()
        stages = stage_times(self.net, how, self.inputs.again())
        sizes = [len(steps) for steps in self.net.stage_steps]
        rows = []
        for node in self.nodes:
            stage = self._stage_of.get(node.step)
            if stage is None:
                rows.append([0.0] * how.repeat)
            else:
                rows.append([t / sizes[stage] for t in stages[stage]])
        return rows

    def _take(self) -> None:
        """Records every output of every node in a run with the present inputs."""
        self._ready()
        net = self.net
        there = {
            t.name: net.borrow_input(t.name).copy()
            for t in net.inputs
            if net.is_given(t.name)
        }
        self._values = recorded(net, {}, there)

    def tensors(self) -> dict[str, Array]:
        """The tensors of the last run, by unique keys: name, node and output number."""
        found = {}
        for index, node in enumerate(self.nodes):
            for output, tensor in enumerate(node.outputs):
                if node.op != "param" and tensor.name in self._values:
                    found[key_of(self.nodes, index, output)] = self._values[tensor.name]
        return found

    def run_individual(
        self, number: int, repeat: int = 1, min_repeat_ms: float = 0, **options: Any
    ) -> list[list[float]]:
        """The seconds of each node in each repeat; 0 for nodes that compute nothing."""
        return self._times(Timing(number, repeat, min_repeat_ms, **options))

    def run_individual_node(
        self,
        index: int,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        **options: Any,
    ) -> BenchmarkResult:
        """Times one layer alone, again and again; memory is then as after a run. On a
        board: the layer in whole runs.

        Errors  UnknownName for a number that no node has
        """
        how = Timing(number, repeat, min_repeat_ms, **options)
        step = self.nodes[self._number(index)].step
        if step < 0:
            return BenchmarkResult([0.0] * repeat)
        self._ready()
        return step_time(self.net, step, how, self.inputs.again())

    def profile(self, /, collectors: object = None, **inputs: Any) -> Report:
        """The times of one run, after three runs to warm up."""
        if collectors is not None:
            raise ValueError("collectors are not supported: only times are measured")
        self._give(inputs)
        times = self._times(Timing(number=1, repeat=_WARM_UP + 1))
        seconds = [spent[-1] for spent in times]
        return profile_report(self.nodes, seconds, str(self.devices[0]))

    # ---- values ---------------------------------------------------------------

    def debug_get_output(self, node: Key, out: Any = None) -> Any:
        """The first output of a node, of a run with the inputs that are there.

        Errors  UnknownName
        """
        return self._output(self._number(node), 0, out)

    def execute_node(self, index: int) -> None:
        """Computes the outputs of the nodes up to this one, for get_node_output."""
        self._executed = self._number(index)
        self._take()

    def get_node_output(self, index: int, output: int = 0) -> Any:
        """The output of the node that was executed last.

        Errors  ValueError unless it is the node that was executed last
        """
        if index != self._executed:
            raise ValueError(f"node {index} is not the last that was executed")
        return self._copied(self.nodes[index].outputs[output].name, None)

    def _output(self, index: int, output: int, out: Any) -> Any:
        name = self.nodes[index].outputs[output].name
        if self.nodes[index].op == "param":
            return self.get_input(name, out)
        self._take()
        return self._copied(name, out)

    def _copied(self, name: str, out: Any) -> Any:
        return handed(np.array(self._values[name]), out)

    def _number(self, node: Key) -> int:
        """The number of a node, given by name or number.

        Errors  UnknownName; TypeError for what is neither number nor name
        """
        if isinstance(node, str):
            names = [n.name for n in self.nodes]
            for there in (names, [n.short for n in self.nodes]):
                if node in there:
                    return there.index(node)
            known = ", ".join(f"'{n.name}'" for n in self.nodes)
            raise UnknownName(f"node '{node}' is not known; there is {known}")
        number = number_of(node)
        if number is None:
            raise TypeError("a node is asked for by its number or name")
        if not 0 <= number < len(self.nodes):
            raise UnknownName(f"node {number}: there are {len(self.nodes)}")
        return number

    def exit(self) -> None:
        """Removes the folder and all files."""
        self.folder.remove()
