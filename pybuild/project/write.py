"""A project file to start from: every option with its help, none of them in force."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

from pybuild.options.kinds import FLAG
from pybuild.options.option import Option, of_words
from pybuild.options.packages import PackageOptions
from pybuild.options.table import (
    COMMON,
    VERBS,
    BoardOptions,
    TreeOptions,
)
from pybuild.project.read import ALONE, SWEEP

_HEAD = """\
# What `crt build` builds in this folder. Lines that begin with # say nothing; take the
# # away to use one. Paths are seen from here. All about it: docs/project-file.md

[models.{name}]
file = {file}
"""
_TAIL = """
# Several models in one tree, with one runtime; options above a model then go here.
# [images.NAME]
# models = ["{name}", "OTHER"]
# exclusive = ["{name},OTHER"]

# Builds with every combination of values, which `crt sweep` makes: docs/sweep.md
# [sweeps.NAME]
# target = ["cortex-m4", "cortex-m55"]
# optimise = ["size", "balanced", "speed"]
"""


def project_text(name: str, file: str) -> str:
    """The text of a crt.toml for one model; each option is there, commented out."""
    parts = [_HEAD.format(name=name, file=json.dumps(file, ensure_ascii=False))]
    groups: dict[str, list[Option]] = {}
    for one in of_words(TreeOptions, PackageOptions, *COMMON, BoardOptions):
        if one.word not in ALONE:
            groups.setdefault(one.group, []).append(one)
    for group, options in groups.items():
        parts.append(f"\n# ---- {group} ----\n")
        parts += [_shown(one) for one in options]
    for verb, classes in VERBS.items():
        own = [
            one
            for kind in classes
            if kind not in (*COMMON, BoardOptions)
            for one in of_words(kind)
        ]
        if verb not in ("build", SWEEP) and own:
            parts.append(f"\n# ---- of crt {verb} ----\n")
            parts.append(f"# [models.{name}.{verb}]\n")
            parts += [_shown(one) for one in own]
    parts.append(_TAIL.format(name=name))
    return "".join(parts)


def _shown(one: Option) -> str:
    """Help, and the default as it would be written; without one, an example."""
    lines = textwrap.wrap(one.help, 84)
    value = "true" if one.kind is FLAG else _toml(one.default)
    if one.default in (None, (), {}):
        value = _toml(one.kind.example)
    return "".join(f"# {x}\n" for x in [*lines, f"{one.word} = {value}"])


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        items = (f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items())
        return "{ " + ", ".join(items) + " }"
    return json.dumps(value, ensure_ascii=False)
