"""Measures a graph executor module, by its own clock or a board's."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from pybuild.executor.inputs import Inputs
from pybuild.executor.instance import Instance
from pybuild.host.ndarray import Device, cpu
from pybuild.host.timing import BenchmarkResult, Timing, time_evaluator
from pybuild.rpc.net import RemoteNet


class Timed(abc.ABC):
    """The part of a module that measures time."""

    net: Instance
    inputs: Inputs
    devices: tuple[Device, ...]

    @abc.abstractmethod
    def __getitem__(self, name: str) -> Callable[..., Any]: ...

    @abc.abstractmethod
    def _give(self, given: Mapping[Any, Any], copy: bool = True) -> None: ...

    @abc.abstractmethod
    def _ready(self) -> None:
        """Binds waiting parameters."""

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        **options: Any,
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures one of this module's; options as of Timing. Inputs
        that a run uses up are given again before each run, which counts.

        Errors  ValueError for a device that the module is not on
        """
        self._must_be_on(dev)
        options = {"number": number, "repeat": repeat, **options}
        if func_name == "run":
            self._ready()
            if isinstance(self.net, RemoteNet):
                net, how = self.net, Timing(**options)
                return lambda *_: net.timed(how, self.inputs.again())
            if self.net.used_up:
                return lambda *given: time_evaluator(
                    self._again_and_again(), **options
                )(*given)
        return time_evaluator(self[func_name], **options)

    def _again_and_again(self) -> Callable[..., Any]:
        """A function that runs with the present inputs, any number of times."""
        again, run = self.inputs.again(), self["run"]

        def call(*given: Any, **more: Any) -> None:
            again()
            run(*given, **more)

        return call

    def _must_be_on(self, where: Device | None) -> None:
        if where is not None and where not in self.devices:
            here = ", ".join(map(str, self.devices))
            raise ValueError(f"the module is on {here}, not on {where}")

    def benchmark(
        self,
        /,
        device: Device | None = None,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        **inputs: Any,
    ) -> BenchmarkResult:
        """Measures runs; end_to_end: with copies of inputs in and outputs out."""
        options: dict[str, Any] = {
            "repeat": repeat,
            "number": number,
            "min_repeat_ms": min_repeat_ms or 0,
            "limit_zero_time_iterations": limit_zero_time_iterations,
            "cooldown_interval_ms": cooldown_interval_ms,
            "repeats_to_cooldown": repeats_to_cooldown,
        }
        if end_to_end:
            if func_name != "run":
                raise ValueError(f"end_to_end measures run, not {func_name}")
            given = [part for pair in inputs.items() for part in pair]
            call = self.time_evaluator("run_from_inputs", device, **options)
            return call(cpu().device_type, 0, *given)
        self._give(inputs)
        return self.time_evaluator(func_name, device, **options)()
