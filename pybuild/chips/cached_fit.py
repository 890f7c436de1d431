"""What `crt fit` found, kept by content: of the same model with the same options the
table is there at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from pybuild.chips.fit import ChipFit, Need, fit
from pybuild.files.result_cache import load_result, store_result, tool_digest
from pybuild.model import Model
from pybuild.progress import Progress, silent


def fit_once(
    model: Model,
    latency: float | str | None = None,
    progress: Progress = silent,
    **options: Any,
) -> tuple[ChipFit, ...]:
    """Returns the result of fit(), from the cache if it is there.

    Errors  BuildError; a `ram_limit` that no plan keeps
    """
    name = f"fit-{_key(model, latency, options)}"
    data = load_result(name)
    found = None if data is None else _read(data)
    if found is None:
        found = fit(model, latency, progress, **options)
        store_result(name, json.dumps([asdict(one) for one in found]).encode())
    return found


def _key(model: Model, latency: object, options: Mapping[str, Any]) -> str:
    graph = model.graph
    whole = hashlib.sha256(tool_digest().encode())
    said = sorted((word, repr(value)) for word, value in options.items())
    whole.update(repr((model.rounding, latency, said)).encode())
    whole.update(repr((graph.parameters, graph.storage, graph.homes)).encode())
    whole.update(repr((graph.lazy, graph.windows, graph.bounded)).encode())
    whole.update(graph.dump().encode())
    arrays = {**graph.constants, **{n: s.initial for n, s in graph.state.items()}}
    for name, value in arrays.items():
        whole.update(f"\0{name}\0{value.dtype.str}{value.shape}\0".encode())
        whole.update(np.ascontiguousarray(value).tobytes())
    return whole.hexdigest()[:32]


def _read(data: bytes) -> tuple[ChipFit, ...] | None:
    """The results in the bytes of a cache file; None: it is damaged."""
    try:
        return tuple(_of_plain(one) for one in json.loads(data))
    except (ValueError, KeyError, TypeError):
        return None


def _of_plain(one: Mapping[str, Any]) -> ChipFit:
    lists = {n: tuple(one[n]) for n in ("boards", "missing", "options")}
    lists["ways"] = tuple(tuple(way) for way in one["ways"])
    needs = {n: Need(**one[n]) for n in ("ram", "flash")}
    return ChipFit(**{**one, **lists, **needs})
