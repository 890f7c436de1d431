"""Samples that arrive a few at a time, on this machine."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ir.graph import Tensor
from pybuild.plan.plan import Plan


class Sampling(abc.ABC):
    """The part of an instance that takes samples, as NAME_push_samples does."""

    _waiting: Array | None = None

    @property
    @abc.abstractmethod
    def plan(self) -> Plan: ...

    @abc.abstractmethod
    def run(self, /, *values: Any, **inputs: Any) -> dict[str, Array]: ...

    def _sampled(self) -> Tensor:
        """The input that takes samples.

        Errors  BuildError where there is no such input
        """
        graph = self.plan.graph
        if not graph.sampled:
            hint = "pybuild.chain(features, net) has samples"
            raise BuildError(graph.name, "takes no samples one by one", hint)
        return graph.tensor(graph.sampled)

    def push_samples(self, samples: Any) -> int:
        """Takes the next samples, any number of them, and does all the runs that they
        allow; how many these were. Outputs are those of the last.

        Errors  BuildError for a model without samples; ValueError for another type
        """
        tensor = self._sampled()
        given = np.asarray(samples)
        if given.dtype != tensor.dtype.numpy or given.ndim != 1:
            what = f"{given.dtype.name}{list(given.shape)}"
            raise ValueError(f"samples are {tensor.dtype.value}[n], not {what}")
        if self._waiting is not None:
            given = np.concatenate([self._waiting, given])
        done = len(given) // tensor.size
        # what comes after an error begins anew
        self._waiting = None
        for part in given[: done * tensor.size].reshape(done, *tensor.shape):
            self.run(**{tensor.name: part})
        self._waiting = given[done * tensor.size :].copy()
        return done

    def samples_wanted(self) -> int:
        """The number of samples missing until the next run."""
        waiting = 0 if self._waiting is None else len(self._waiting)
        return self._sampled().size - waiting
