"""A quantised graph and its report as one file, kept by content: the same model, the
same samples and choices are quantised once, whoever asks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.files.result_cache import load_result, store_result, tool_digest
from pybuild.ir.graph import Graph
from pybuild.ir.graph_text import parse, text
from pybuild.quantisation.draft import Choices
from pybuild.quantisation.quantise import quantise
from pybuild.quantisation.report import Quantisation
from pybuild.quantisation.samples import Samples
from pybuild.quantisation.stages import Stages

_ROLE = "quantised"


def quantised_once(
    graph: Graph, samples: Samples, test: Samples, choices: Choices, stages: Stages
) -> tuple[Graph, Quantisation]:
    """Returns the result of quantise(), from the cache if it is there.

    Errors  BuildError with everything that is wrong with the choices
    """
    name = f"{_ROLE}-{_key(graph, samples, test, choices)}"
    data = None if choices.wrong else load_result(name)
    found = None if data is None else _read(data, graph)
    if found is None:
        found = quantise(graph, samples, test, choices, stages)
        made = _written(*found)
        if made is not None:
            store_result(name, made)
    stages.done()
    return found


def _key(graph: Graph, samples: Samples, test: Samples, choices: Choices) -> str:
    whole = hashlib.sha256(tool_digest().encode())
    whole.update(repr((graph.name, graph.source, choices)).encode())
    whole.update(json.dumps(dict(graph.origins)).encode())
    whole.update(graph.dump().encode())
    for name, value in _arrays(graph, samples, test):
        whole.update(f"\0{name}\0{value.dtype.str}{value.shape}\0".encode())
        whole.update(np.ascontiguousarray(value).tobytes())
    return whole.hexdigest()[:32]


def _arrays(
    graph: Graph, samples: Samples, test: Samples
) -> Iterator[tuple[str, Array]]:
    yield from graph.constants.items()
    for role, given in (("calibration", samples), ("test", test)):
        for name, value in given.inputs.items():
            yield f"{role} {name}", value
        if given.labels is not None:
            yield f"{role} labels", given.labels


def _written(graph: Graph, report: Quantisation) -> bytes | None:
    """The bytes of a result for the cache; None: the text of its graph is not
    complete."""
    said = text(graph)
    try:
        again = parse(said)
    except ValueError:
        return None
    if text(again) != said or again.nodes != graph.nodes:
        return None
    if again.tensors != dict(graph.tensors):
        return None
    facts: dict[str, Any] = {"graph": said, "origins": dict(graph.origins)}
    facts["tensors"] = list(graph.tensors)  # reports list them in this order
    return json.dumps({**facts, "report": asdict(report)}).encode()


def _read(data: bytes, graph: Graph) -> tuple[Graph, Quantisation] | None:
    """The result in the bytes of a cache file; None: it is damaged."""
    try:
        facts = json.loads(data)
        made = parse(facts["graph"])
        report = _of_plain(Quantisation, facts["report"])
        tensors = {name: made.tensors[name] for name in facts["tensors"]}
        whole = replace(
            made, tensors=tensors, origins=dict(facts["origins"]), fixed=graph.fixed,
            signatures=graph.signatures, renamed=graph.renamed,
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, BuildError):
        return None
    return whole, report


def _of_plain(kind: Any, value: Any) -> Any:
    """A dataclass of dataclasses, tuples and plain values, as asdict() has given it."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        own = {
            one.name: _of_plain(hints[one.name], value[one.name])
            for one in fields(kind)
        }
        return kind(**own)  # type: ignore[operator]
    if isinstance(value, list):
        (item,) = set(get_args(kind)) - {Ellipsis}
        return tuple(_of_plain(item, each) for each in value)
    inner = [each for each in get_args(kind) if is_dataclass(each)]
    return _of_plain(inner[0], value) if inner and value is not None else value
