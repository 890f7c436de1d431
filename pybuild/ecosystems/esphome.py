"""An external component of ESPHome: a YAML schema, C++, and all C beside it.

ESPHome compiles the files of one folder and puts it on no include path, so crt's files
lie among the others, as crt_NAME, and includes name them so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pybuild.ecosystems.examples import TEMPLATES
from pybuild.ecosystems.words import Words
from pybuild.emit.content import Content, whole
from pybuild.errors import BuildError
from pybuild.install import crt_headers, crt_sources
from pybuild.package.tree import filled

Files = dict[str, Content]

# the component, the YAML that shows it
_EXAMPLE = "examples/esphome/listen.yaml"
_CRT_INCLUDE = re.compile(r'^(\s*#\s*include\s+")crt/', re.MULTILINE)
_SELFTEST = "_selftest.c"
_ROOM = TEMPLATES / "esphome"


def component_files(
    name: str, generated: Mapping[str, Content], words: Words | None
) -> Files:
    """components/NAME/ and an example.

    Errors  BuildError for a build that hears no words
    """
    if words is None:
        what = "is for wake words, which hear features"
        raise BuildError("--package esphome", what, "--front micro_frontend")
    values = _values(name, words)
    folder = f"components/{name}"
    files: Files = {
        f"{folder}/__init__.py": filled(_ROOM / "component.py.in", values),
        f"{folder}/{name}_component.h": filled(_ROOM / "component.h.in", values),
        f"{folder}/{name}_component.cpp": filled(_ROOM / "component.cpp.in", values),
        _EXAMPLE: filled(_ROOM / "listen.yaml.in", values),
    }
    sources = {p: c for p, c in generated.items() if p.endswith((".c", ".h"))}
    for path, text in whole(sources).items():
        if not path.endswith(_SELFTEST):
            files[f"{folder}/{path}"] = _flat(text)
    for file in (*crt_headers(), *crt_sources()):
        text = file.read_text(encoding="utf-8")
        files[f"{folder}/crt_{file.name}"] = _flat(text)
    return files


def _flat(text: str) -> str:
    """The text with crt's headers beside it."""
    return _CRT_INCLUDE.sub(r"\1crt_", text)


def _values(name: str, words: Words) -> dict[str, str]:
    nets = [
        f"    {word.name!r}: ({i}, {word.cutoff}, {word.window}),"
        for i, word in enumerate(words.words)
    ]
    vad = words.vad
    return {
        "name": name, "upper": name.upper(), "models": "\n".join(nets),
        "vad": f"({vad.cutoff}, {vad.window})" if vad else "None",
        "longest": str(words.longest), "first": words.words[0].name,
        "vad_yaml": "  vad:\n    probability_cutoff: 60%\n" if vad else "",
    }  # fmt: skip
