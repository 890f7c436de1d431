"""The data of the page of several models in one image, as JSON: the image's report, and
a part for each model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybuild.html.data import SCHEMA, Built, of_library, of_report
from pybuild.package.image_report import ImageReport


def of_image(report: ImageReport, members: Mapping[str, Built]) -> dict[str, Any]:
    """The page data of each model, without other plans, because memory is shared."""
    parts = {name: of_library(one, plans=False) for name, one in members.items()}
    return _whole(report.to_json(), parts)


def of_image_report(report: Mapping[str, Any]) -> dict[str, Any]:
    """The data of an image's page; report: as report.json of an image has it"""
    return _whole(report, {one["name"]: of_report(one) for one in report["models"]})


def _whole(report: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Reports of models are in their parts alone."""
    own = {key: value for key, value in report.items() if key != "models"}
    return {"schema": SCHEMA, "image": own, "parts": parts}
