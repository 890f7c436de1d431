"""What a page shows of several models in one image, as JSON: the image's report, and a
part for each model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pybuild.html.data import SCHEMA, Built, of_library, of_report
from pybuild.package.image_report import ImageReport


class BuiltImage(Protocol):
    """image.py's Image is one."""

    @property
    def report(self) -> ImageReport: ...
    @property
    def members(self) -> Mapping[str, Built]: ...


def of_image(image: BuiltImage) -> dict[str, Any]:
    """Of each model what its own page would show, but other plans: memory is shared."""
    parts = {name: of_library(one, plans=False) for name, one in image.members.items()}
    return _whole(image.report.to_json(), parts)


def of_image_report(report: Mapping[str, Any]) -> dict[str, Any]:
    """report: as report.json of an image has it"""
    return _whole(report, {one["name"]: of_report(one) for one in report["models"]})


def _whole(report: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Reports of models are in their parts alone."""
    own = {key: value for key, value in report.items() if key != "models"}
    return {"schema": SCHEMA, "image": own, "parts": parts}
