"""Post-training quantisation: calibrate, fit, equalise, correct, choose, report."""

from __future__ import annotations

from dataclasses import replace

from pybuild.errors import BuildError, Problem, fitting
from pybuild.ir.graph import Graph
from pybuild.ops.hybrid import SUMS
from pybuild.passes import float_graph
from pybuild.passes.qdq import WEIGHTED
from pybuild.passes.turns.roll import roll
from pybuild.passes.turns.unroll import unrolled
from pybuild.progress import silent
from pybuild.quantisation.doubts import doubts
from pybuild.quantisation.draft import Choices, Draft, Made, draft, ready
from pybuild.quantisation.equalise import equalised, groups
from pybuild.quantisation.fit import fitted
from pybuild.quantisation.measure import Wanted, noise, wanted
from pybuild.quantisation.mix import cheapest_mix, loss
from pybuild.quantisation.report import LayerNoise, Quantisation, Score, StayedFloat
from pybuild.quantisation.samples import Samples
from pybuild.quantisation.scheme import CHOSEN, refused
from pybuild.quantisation.stages import Stages
from pybuild.quantisation.transformer import MOVES, is_move, scaled_softmax


def quantise(
    graph: Graph,
    samples: Samples,
    test: Samples,
    choices: Choices,
    stages: Stages | None = None,
) -> tuple[Graph, Quantisation]:
    """The quantised graph, before passes, and the report.

    graph    float, after passes
    samples  to calibrate with; test: to measure with
    stages   told how far the work is
    Errors   BuildError with everything that is wrong with the choices
    """
    kept, found = _kept(graph, choices)
    found = [*choices.wrong, *found]
    if found:
        raise BuildError.of(found)
    stages = stages or Stages(silent)
    stages.begin("observing samples")
    first = draft(graph, samples, choices)
    stages.at(0.7)
    want = wanted(ready(graph, samples), samples)
    best = _best(first, samples, want, kept, stages)
    stages.begin("measuring")
    want = want if test is samples else wanted(ready(graph, test), test)
    if choices.max_loss is None:
        made = best.made(want, kept)
    else:
        made = cheapest_mix(best, want, kept, choices.max_loss)
        if not made.scheme.integers:
            # layers that were equalised round their floats in other places
            best, made = first, first.made(want, dict(made.scheme.floats))
    stages.at(0.3)
    report = _report(best, made, want, samples)
    stages.at(0.9)
    doubtful = doubts(first.graph, samples, first.seen)
    return made.graph, replace(report, warnings=doubtful)


def quantisable(graph: Graph) -> Graph:
    """The graph after the passes that come before rounding.

    Errors  BuildError for one without float layers, of dynamic range, with state, or
            on devices
    """
    if graph.is_placed:
        what = "gives layers to devices, which fits only the layers that it has"
        raise BuildError(graph.source, what, "quantise first, then --place")
    if graph.state:
        what = "keeps tensors from run to run, whose values samples must give"
        raise BuildError(graph.source, what, "quantise first, then with_state()")
    if any(node.op in SUMS for node in graph.nodes):
        what = (
            "has layers of dynamic range: int8 weights whose inputs become int8 in runs"
        )
        hint = "--hybrid float for a .tflite; else give the model before quantisation"
        raise BuildError(graph.source, what, hint)
    made = unrolled(roll(float_graph(replace(graph, storage={}))))
    made = scaled_softmax(made)
    no = refused(made)
    if all(n.output in no or is_move(n, made) for n in made.nodes):
        hint = "give the model as it was before quantisation"
        raise BuildError(graph.source, "has no float layer to quantise", hint)
    return made


def _kept(graph: Graph, choices: Choices) -> tuple[dict[str, str], list[Problem]]:
    """Outputs of the layers that are named to stay float; names of none."""
    kept: dict[str, str] = {}
    problems = []
    for option, names in (
        ("--keep-float", choices.keep_float),
        ("--int16", choices.int16),
    ):
        for name in names:
            named = [n.output for n in graph.nodes if graph.is_called(name, n)]
            if option == "--keep-float":
                kept |= dict.fromkeys(named, CHOSEN)
            if not named:
                layers = [graph.called(n) for n in graph.nodes if n.op in WEIGHTED]
                hint = fitting(name, layers)
                problems.append(Problem(option, f"there is no '{name}'", hint))
    for name in sorted({*choices.keep_float} & {*choices.int16}):
        what = f"'{name}' cannot be float and int16"
        problems.append(Problem("--int16", what, "name it once"))
    return kept, problems


def _best(
    first: Draft,
    samples: Samples,
    want: Wanted,
    kept: dict[str, str],
    stages: Stages,
) -> Draft:
    """With fitted weights, equalisation and bias correction, one after the other, each
    where it makes the outputs better.
    """

    def error(each: Draft) -> float:
        return each.made(want, kept).measured.outputs.share

    best, choices = first, first.choices
    least: float | None = None
    steps = (
        ("fitting weights", choices.fit_weights, _fitted),
        ("equalising channels", choices.equalise, _equalised),
        ("correcting biases", choices.bias_correction, _corrected),
    )
    for name, wanted_, step in steps:
        stages.begin(name)
        other = step(best, samples, stages) if wanted_ else None
        if other is not None:
            least = error(best) if least is None else least
            found = error(other)
            if found < least:
                best, least = other, found
    return best


def _fitted(before: Draft, samples: Samples, stages: Stages) -> Draft | None:
    work = ready(before.graph, samples)
    found = fitted(work, samples, before.wide, lambda share: stages.at(0.85 * share))
    return replace(before, fitted=found) if found else None


def _equalised(before: Draft, samples: Samples, stages: Stages) -> Draft | None:
    """Its weights are fitted anew."""
    count = len(groups(before.graph))
    if not count:
        return None
    other = equalised(before.graph, before.seen)
    made = replace(draft(other, samples, before.choices), groups=count)
    return (_fitted(made, samples, stages) if before.fitted else None) or made


def _corrected(before: Draft, samples: Samples, stages: Stages) -> Draft:
    return replace(before, corrects=True)


def _report(best: Draft, made: Made, want: Wanted, samples: Samples) -> Quantisation:
    graph, got = best.graph, made.measured
    outputs = [n.output for n in graph.nodes if n.op not in MOVES]
    stands = {name: made.ints.get(name, name) for name in outputs}
    known = {n: s for n, s in stands.items() if s in made.graph.tensors}
    # of the same graph, equalised or not: its layers are what was rounded
    own = replace(want, execution=ready(graph, want.samples))
    powers = noise(own, made.graph, known)
    layers = [
        LayerNoise(
            node.name,
            graph.called(node),
            node.op,
            made.scheme.kind(node).value,
            powers[node.output].decibels,
        )
        for node in graph.nodes
        if node.output in powers
    ]
    layers.sort(key=lambda layer: 1e9 if layer.snr is None else layer.snr)
    floats = tuple(
        StayedFloat(
            node.name, graph.called(node), node.op, made.scheme.floats[node.output]
        )
        for node in graph.nodes
        if node.output in made.scheme.floats and node.op not in MOVES
    )
    score = None
    if want.right is not None and got.right is not None:
        score = Score(want.samples.count, want.right, got.right)
    return Quantisation(
        method=best.choices.calibration.method,
        samples=samples.count,
        measured_on=want.samples.count,
        boundary=best.choices.boundary,
        layers=tuple(layers),
        floats=floats,
        error=got.outputs.share,
        score=score,
        loss=loss(want, made),
        fitted=bool(best.fitted),
        equalised=best.groups,
        bias_corrected=best.corrects,
    )
