"""Checks connections between models, as users write them: an output that is another
model's input. Knows graphs by their models' names; no addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pybuild.errors import BuildError, Problem, fitting
from pybuild.ir.graph import Graph, Tensor
from pybuild.records import dataclass

OPTION = "--connect"


@dataclass(frozen=True)
class Connection:
    """Connects output `output` of model `source` to input `input` of model `target`."""

    source: str
    output: str
    target: str
    input: str

    def __str__(self) -> str:
        return f"{self.source}.{self.output}={self.target}.{self.input}"


def read_connections(
    texts: Sequence[str], graphs: Mapping[str, Graph]
) -> tuple[Connection, ...]:
    """Read texts of the form MODEL.OUTPUT=MODEL.INPUT; names of tensors may contain any
    character.

    Errors  BuildError with everything that is wrong
    """
    found: list[Connection] = []
    problems: list[Problem] = []
    fed: dict[tuple[str, str], Connection] = {}
    for text in texts:
        try:
            made = _read(text, graphs)
        except BuildError as error:
            problems += error.problems
            continue
        problems += _check(made, graphs)
        known = fed.setdefault((made.target, made.input), made)
        if known is not made:
            what = f"'{made.target}.{made.input}' has two sources, "
            what += f"'{known.source}.{known.output}' and '{made.source}.{made.output}'"
            problems.append(Problem(OPTION, what, "leave one out"))
        found.append(made)
    if problems:
        raise BuildError.of(problems)
    return tuple(found)


def _read(text: str, graphs: Mapping[str, Graph]) -> Connection:
    halves = [(text[:i], text[i + 1 :]) for i, c in enumerate(text) if c == "="]
    splits = [
        (*a.split(".", 1), *b.split(".", 1)) for a, b in halves if "." in a and "." in b
    ]
    if not splits:
        what = f"'{text}' is not MODEL.OUTPUT=MODEL.INPUT"
        raise BuildError(OPTION, what, "for example a.scores=b.features")
    for split in splits:
        if not list(_unknown(split, graphs)):
            return Connection(*split)
    raise BuildError.of(_unknown(splits[0], graphs))


def _unknown(split: Sequence[str], graphs: Mapping[str, Graph]) -> Iterator[Problem]:
    """Yield the problems of a connection that names unknown models or tensors."""
    for role, model, tensor in (("output", *split[:2]), ("input", *split[2:])):
        if model not in graphs:
            hint = fitting(model, graphs)
            yield Problem(OPTION, f"there is no model '{model}'", hint)
            continue
        graph = graphs[model]
        known = graph.outputs if role == "output" else graph.inputs
        if tensor not in known:
            hint = fitting(tensor, known)
            yield Problem(OPTION, f"'{model}' has no {role} '{tensor}'", hint)


def _check(made: Connection, graphs: Mapping[str, Graph]) -> Iterator[Problem]:
    if made.source == made.target:
        what = f"'{made}' connects a model with itself: it would read what it writes"
        yield Problem(OPTION, what, "copy the output to the input between two runs")
        return
    output = graphs[made.source].tensor(made.output)
    given = graphs[made.target].tensor(made.input)
    if _kind(output) != _kind(given):
        what = f"output '{made.source}.{made.output}' is {_text(output)}, "
        what += f"input '{made.target}.{made.input}' is {_text(given)}"
        hint = "type, shape, scale and zero point must be equal"
        yield Problem(OPTION, what, hint)


def _kind(tensor: Tensor) -> tuple[object, ...]:
    return tensor.dtype, tensor.shape, tensor.quant


def _text(tensor: Tensor) -> str:
    text = f"{tensor.dtype.value}{list(tensor.shape)}"
    quant = tensor.quant
    if quant is None:
        return text
    return f"{text} with scale {quant.scale[0]:.9g}, zero point {quant.zero_point[0]}"
