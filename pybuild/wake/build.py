"""Wake words as an image: one model of features, one of all nets, and the C that
decides which word is heard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pybuild.ecosystems.packages import Made
from pybuild.ecosystems.words import Words, features_name, nets_name, words_files
from pybuild.emit.content import Content
from pybuild.emit.tables.names import chosen_prefix
from pybuild.entry import Buildable, model_of
from pybuild.errors import BuildError, Problem
from pybuild.features import Features, micro_frontend
from pybuild.image import Image, build_image
from pybuild.records import dataclass
from pybuild.wake.manifest import Manifest, read_manifest
from pybuild.wake.nets import rows_of_nets, side_by_side

RATE, WINDOW = 16000, 480  # samples: of a second, of a row of features
MOST = 32  # nets of a component
FRONT = "micro_frontend"  # the features that all of these nets were trained on


@dataclass(frozen=True, repr=False)
class WakeWords(Image):
    """Models that hear wake words, and what their manifests say."""

    words: Words = field(kw_only=True)

    def in_c(self) -> dict[str, Content]:
        return super().in_c() | words_files(self.name, self.words)

    def for_packages(self) -> Made:
        return replace(super().for_packages(), words=self.words)


def build_wake_words(
    nets: Mapping[str, str | Path],
    name: str | None = None,
    models: Mapping[str, Buildable] | None = None,
    **options: Any,
) -> WakeWords:
    """Plans the nets of wake words, and of voice, behind one front end.

    nets     their files by name; beside each lies its manifest: okay_nabu.json
    name     of what is built; default: the nets' names, joined
    models   the nets as they were loaded; None: as their files say
    options  as Model.build
    Errors   BuildError with everything that is wrong with manifests and nets
    """
    manifests = _manifests(nets)
    loaded = models or {each: str(path) for each, path in nets.items()}
    graphs = {each: model_of(loaded[each]).lower() for each in manifests}
    title = chosen_prefix(name or "_".join(nets), "")
    hop = next(iter(manifests.values())).step * RATE // 1000
    features: Features = micro_frontend(RATE, WINDOW, hop)
    bands = features.graph.tensor(features.graph.outputs[0]).size
    rows = rows_of_nets(graphs, bands)
    joined = side_by_side(graphs, nets_name(title))
    image = build_image(
        {features_name(title): features.graph, nets_name(title): joined},
        name=title, lazy=joined.inputs, **options,
    )  # fmt: skip
    words = [one.word for one in manifests.values() if not one.is_vad]
    vad = [one.word for one in manifests.values() if one.is_vad]
    silent = -(-WINDOW // hop) - 1
    made = Words(words, vad[0] if vad else None, hop, silent, rows, bands)
    whole = image.members, image.pool, image.tables, image.options, image.how
    return WakeWords(*whole, words=made)


def _manifests(nets: Mapping[str, str | Path]) -> dict[str, Manifest]:
    """The manifests by the names of their nets, VAD last.

    Errors  BuildError with everything that is wrong with them
    """
    found: dict[str, Manifest] = {}
    problems: list[Problem] = []
    if len(nets) > MOST:
        what = f"{len(nets)} nets; a component has at most {MOST}"
        problems.append(Problem("--package esphome", what, "fewer of them"))
    for name, path in nets.items():
        own = chosen_prefix(name, "")
        try:
            found[own] = read_manifest(path, own)
        except BuildError as error:
            problems += error.problems
    where = "--package esphome"
    if len({one.step for one in found.values()}) > 1:
        told = ", ".join(f"{name} {one.step} ms" for name, one in found.items())
        what = f"nets want rows at different steps: {told}"
        problems.append(Problem(where, what, "one package for each step"))
    if sum(one.is_vad for one in found.values()) > 1:
        problems.append(Problem(where, "two nets are for voice (vad)", "one of them"))
    if not problems and all(one.is_vad for one in found.values()):
        problems.append(Problem(where, "there is no wake word", "a net for one"))
    if problems:
        raise BuildError.of(problems)
    return dict(sorted(found.items(), key=lambda pair: pair[1].is_vad))
