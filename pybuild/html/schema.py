"""The JSON Schema of report.json and of a page's data, made from the dataclasses that
they are: python -m pybuild.html.schema [image]
"""

from __future__ import annotations

import inspect
import json
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pybuild.html.data import SCHEMA
from pybuild.html.samples import SampleFacts
from pybuild.package.curve import Point
from pybuild.package.image_report import ImageReport
from pybuild.package.occupancy import Occupancy
from pybuild.package.report import SCHEMA as REPORT_SCHEMA
from pybuild.package.report import Ram, Report
from pybuild.records import old_names

Json = dict[str, Any]

_PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean"}
REPORT_FILE = "report-schema.json"  # beside that of images
_OF_IMAGES = (
    "Connection", "ImageBlock", "ImageFlash", "ImageRam", "ImageRegion", "Shared"
)  # fmt: skip
_NODE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "op": {"type": "string"}},
    "required": ["name", "op"],
}


def schema() -> Json:
    """The JSON Schema of the page's data; its `report` is report.json."""
    known: dict[str, Json] = {}
    report = _of(Report, known)
    known["Report"]["properties"]["example"] = {
        "type": "object", "description": "digest of the folder's own example",
    }  # fmt: skip
    points = {"type": "array", "items": _of(Point, known)}
    node = {"type": "array", "items": _NODE}
    plans = _object(
        "RAM against instructions",
        points=points,
        chosen=_of(Point, known),
        bound={"type": "integer"},
        boards={"type": "object"},
    )
    other = _object(
        "the plan beside",
        title={"type": "string"},
        ram=_of(Ram, known),
        memory=_of(Occupancy, known),
    )
    change = _object(
        "a pass, and the nodes that it took out and put in",
        **{"pass": {"type": "string"}, "nodes": {"type": "integer"}},
        gone=node,
        made=node,
    )
    number = {"type": "integer"}
    about = "a chip, and the bytes that it has more than are needed; less, if negative"
    chip = _object(about, chip={"type": "string"}, ram=number, flash=number)
    whole = _object(
        f"Data of a page, schema {SCHEMA}; report.json, schema {REPORT_SCHEMA}",
        schema={"const": SCHEMA},
        report=report,
        chips={"type": "array", "items": chip},
        plans=_or_none(plans),
        other=_or_none(other),
        passes=_or_none({"type": "array", "items": change}),
        measured=_or_none({"type": "object", "description": "of crt bench --on BOARD"}),
        samples=_or_none(_of(SampleFacts, known)),
    )
    known["Report"]["properties"]["schema"] = {"const": REPORT_SCHEMA}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **whole, "$defs": dict(sorted(known.items()))}


def of_image() -> Json:
    """The JSON Schema of a page of several models; its parts are as in schema()."""
    known: dict[str, Json] = {}
    _of(ImageReport, known)
    own = known["ImageReport"]["properties"]
    facts = {name: own[name] for name in own if name != "models"}
    facts["example"] = {"type": "object", "description": "digest of the example"}
    needed = [name for name in known["ImageReport"]["required"] if name != "models"]
    image = {**known["ImageReport"], "properties": facts, "required": needed}
    whole = _object(
        f"Data of a page of several models, schema {SCHEMA}",
        schema={"const": SCHEMA},
        image=image,
        parts={"type": "object", "additionalProperties": {"$ref": REPORT_FILE}},
    )
    parts = {name: known[name] for name in sorted(known) if name in _OF_IMAGES}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **whole, "$defs": parts}


def _object(about: str, **properties: Json) -> Json:
    return {
        "description": about,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _or_none(one: Json) -> Json:
    return {"anyOf": [{"type": "null"}, one]}


def _of(kind: Any, known: dict[str, Json]) -> Json:
    """The schema of a type; dataclasses are in `known` by their name."""
    if isinstance(kind, type) and is_dataclass(kind):
        name = kind.__name__
        if name not in known:
            known[name] = {}
            hints = typing.get_type_hints(kind)
            own = {one.name: _of(hints[one.name], known) for one in fields(kind)}
            known[name] = _object(inspect.getdoc(kind) or name, **own)
            for old, new in old_names(kind).items():
                known[name]["properties"][old] = {**own[new], "deprecated": True}
        return {"$ref": f"#/$defs/{name}"}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and parts[-1] is ...:
        return {"type": "array", "items": _of(parts[0], known)}
    if origin is tuple:
        each = [_of(part, known) for part in parts]
        size = {"minItems": len(each), "maxItems": len(each)}
        return {"type": "array", "prefixItems": each, "items": False, **size}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_of(part, known) for part in parts]}
    if kind is type(None):
        return {"type": "null"}
    assert origin is Mapping, kind
    return {"type": "object"}


if __name__ == "__main__":
    print(json.dumps(of_image() if "image" in sys.argv else schema(), indent=2))
