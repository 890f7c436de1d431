"""A float graph that is ready to be rewritten, and the integer graphs it becomes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace

from pybuild.dtype import DType
from pybuild.errors import BuildError, Problem
from pybuild.ir.graph import Graph
from pybuild.passes.legalise import set_rounding
from pybuild.passes.turns.roll import alike
from pybuild.quantisation.bias import corrected
from pybuild.quantisation.execute import Execution, NodeError, execution
from pybuild.quantisation.measure import Measured, Wanted, measured
from pybuild.quantisation.ranges import Calibration, Observed, Range, observe, ranges
from pybuild.quantisation.regions import regions
from pybuild.quantisation.rewrite import rewritten
from pybuild.quantisation.samples import Samples
from pybuild.quantisation.scheme import Fitted, Scheme, scheme
from pybuild.quantisation.transformer import wide_nodes
from pybuild.records import dataclass


@dataclass(frozen=True)
class Choices:
    """The options that the user chose.

    keep_float   layers by name, or by the name of their output; int16: others
    max_loss     a share, 0.005 is 0.5 %; None: whatever int8 costs in accuracy
    boundary     "int8": inputs and outputs are integers too
    rounding     litert | tflm | single | onnx, of the build
    wrong        what is wrong with choices whatever the model is
    """

    calibration: Calibration = field(default_factory=Calibration)
    keep_float: Collection[str] = ()
    int16: Collection[str] = ()
    bias_correction: bool = True
    equalise: bool = True
    fit_weights: bool = True
    max_loss: float | None = None
    boundary: str = "float"
    rounding: str = "litert"
    wrong: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Made:
    """A quantised graph; ints: float tensor -> the one that stands for it."""

    graph: Graph
    ints: Mapping[str, str]
    scheme: Scheme
    measured: Measured


@dataclass(frozen=True)
class Draft:
    """A float graph and what is known of it.

    seen, ranges  of every float tensor that differs from sample to sample
    corrects      whether biases take back the error of the weights
    fitted        weights fitted to the samples, by output of their layer
    groups        of tensors that were equalised
    alike         tensors that a step of a loop has in the place of another step's
    """

    graph: Graph
    seen: Mapping[str, Observed]
    ranges: Mapping[str, Range]
    choices: Choices
    corrects: bool = False
    fitted: Mapping[str, Fitted] = field(default_factory=dict)
    groups: int = 0
    alike: tuple[tuple[str, ...], ...] = ()

    @property
    def wide(self) -> set[str]:
        """Outputs of the layers with int16 activations: those that the user wants, and
        a transformer's.
        """
        names, graph = self.choices.int16, self.graph
        called = graph.is_called
        named = {
            n.output for n in graph.nodes if any(called(name, n) for name in names)
        }
        return named | wide_nodes(graph, regions(graph))

    def made(
        self, want: Wanted, kept: Mapping[str, str], wide: Collection[str] = ()
    ) -> Made:
        """Measured; what an operator refuses as integers stays float like `kept`.

        wide    outputs of nodes with int16 activations, besides those chosen

        Errors  BuildError where even that does not help
        """
        floats = dict(kept)
        while True:
            wides = {*wide, *self.wide}
            chosen = scheme(self.graph, self.ranges, floats, wides, self.alike)
            chosen = replace(chosen, fitted=self.fitted)
            source = self.graph
            if self.corrects:
                source = corrected(source, chosen, self.seen)
            whole, ints = rewritten(source, chosen, self.choices.boundary)
            graph = set_rounding(whole, self.choices.rounding)
            try:
                return Made(whole, ints, chosen, measured(want, graph))
            except NodeError as error:
                floats |= self._refused(error, chosen)

    def _refused(self, error: NodeError, chosen: Scheme) -> dict[str, str]:
        found = {
            node.output: error.problem.what
            for node in self.graph.nodes
            if node.name == error.node.name and node.output in chosen.integers
        }
        if not found:
            raise BuildError.of([error.problem])
        return found


def draft(graph: Graph, samples: Samples, choices: Choices) -> Draft:
    """The graph, observed on the calibration samples.

    Errors  BuildError for what numpy cannot run, or values without bound
    """
    work = ready(graph, samples)
    moving = [*graph.inputs, *(name for node in graph.nodes for name in node.outputs)]
    names = [
        name
        for name in moving
        if graph.tensor(name).dtype is DType.FLOAT32 and graph.tensor(name).size
    ]
    seen = observe(work, samples, names)
    found = ranges(work, samples, seen, choices.calibration)
    return Draft(graph, seen, found, choices, alike=alike(graph))


def ready(graph: Graph, samples: Samples) -> Execution:
    """The float graph, ready to run on the samples.

    Errors  BuildError for what numpy cannot run
    """
    try:
        return execution(graph, samples)
    except NodeError as error:
        raise BuildError.of([error.problem]) from None
