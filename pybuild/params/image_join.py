"""Joins the parameter images of several models where that makes equal payloads one."""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.params.codecs import NONE
from pybuild.params.image import Parameter
from pybuild.params.image_read import read_image
from pybuild.params.image_write import write_image


def joined(images: Mapping[str, bytes]) -> dict[str, bytes]:
    """The image that each model reads: its own, or one with others' parameters too.

    Images that hold an equal payload are joined, unless one name would mean two
    things. One with packed payloads stays alone: each model that opens it would pay RAM
    for the others'.

    images  by the name of the model
    """
    groups: list[_Group] = []
    for model, image in images.items():
        one = _Group(model, image)
        for index, other in enumerate(groups):
            both = other.with_(one)
            if both is not None:
                groups[index] = both
                break
        else:
            groups.append(one)
    made = {model: group.image for group in groups for model in group.models}
    return {model: made[model] for model in images}


class _Group:
    """Models that read one image."""

    def __init__(self, model: str, image: bytes) -> None:
        found = read_image(image, model)
        self.models, self.image, self.align = [model], image, found.align
        self.alone = any(e.codec != NONE for e in found.entries)
        self.parameters = {p.name: p for p in found.parameters()}

    def with_(self, other: _Group) -> _Group | None:
        """One of the models of both; None if it would save nothing, or cannot be."""
        if self.image == other.image:
            made, image = self.parameters, self.image
        elif self.alone or other.alone or not self._shares(other):
            return None
        else:
            made = self.parameters | other.parameters
            image = write_image(made.values(), align=max(self.align, other.align))
            if len(image) >= len(self.image) + len(other.image):
                return None
        both = _Group(self.models[0], image)
        both.models = [*self.models, *other.models]
        return both

    def _shares(self, other: _Group) -> bool:
        """True if payloads are equal, and names that both have mean the same."""
        common = self.parameters.keys() & other.parameters.keys()
        if any(self.parameters[n] != other.parameters[n] for n in common):
            return False
        return not _payloads(self.parameters).isdisjoint(_payloads(other.parameters))


def _payloads(parameters: Mapping[str, Parameter]) -> set[bytes]:
    return {p.payload for p in parameters.values() if p.payload}
