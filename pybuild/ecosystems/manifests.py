"""The files by which ecosystems know a package: JSON, YAML, XML and properties.

YAML is written with texts as JSON has them, which YAML reads alike.
"""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Sequence

from pybuild.ecosystems.about import RUNTIME, About

_CLASS = "Machine Learning"
_CSUB = 32  # characters, by PACK.xsd


def properties(about: About, header: str, details: str, runtime: About | None) -> str:
    """library.properties of Arduino, format 1.5."""
    lines = {
        "name": about.name,
        "version": about.version,
        "author": about.maker,
        "maintainer": about.maker,
        "sentence": about.description,
        "paragraph": details,
        "category": "Data Processing",
        "url": about.place,
        "architectures": "*",
        "includes": header,
    }
    if about.licence:
        lines["license"] = about.licence
    if runtime:
        lines["depends"] = f"{runtime.name} (>={runtime.version})"
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def keywords(types: Sequence[str], functions: Sequence[str]) -> str:
    """keywords.txt of Arduino: words and tabs."""
    lines = [f"{name}\tKEYWORD1" for name in types]
    lines += [f"{name}\tKEYWORD2" for name in functions]
    return "".join(f"{line}\n" for line in lines)


def library_json(about: About, header: str, examples: Sequence[str]) -> str:
    """library.json of PlatformIO, whose compilers are GCC and Clang."""
    facts: dict[str, object] = {
        "name": about.name,
        "version": about.version,
        "description": about.description,
        "keywords": ["neural network", "microcontroller"],
        "authors": [{"name": about.maker}],
    }
    if about.licence:
        facts["license"] = about.licence
    facts |= {
        "headers": header,
        "frameworks": "*",
        "platforms": "*",
        "build": {"flags": ["-ffp-contract=off"], "srcDir": "src", "includeDir": "src"},
    }
    if examples:
        facts["examples"] = [
            {"name": path.split("/")[1], "base": path.rpartition("/")[0],
             "files": [path.rpartition("/")[2]]}
            for path in examples
        ]  # fmt: skip
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def component_yml(about: About) -> str:
    """idf_component.yml of ESP-IDF's component manager."""
    facts = {
        "version": about.version,
        "description": about.description,
        "url": about.place,
    }
    if about.licence:
        facts["license"] = about.licence
    lines = [f"{key}: {_quoted(value)}\n" for key, value in facts.items()]
    return "".join(lines) + 'dependencies:\n  idf: ">=4.4"\n'


def module_yml(about: About, samples: Sequence[str], needs: Sequence[str]) -> str:
    """zephyr/module.yml."""
    lines = [
        f"name: {about.name}",
        "build:",
        "  cmake: zephyr",
        "  kconfig: zephyr/Kconfig",
    ]
    for key, paths, indent in (("depends", needs, "  "), ("samples", samples, "")):
        lines += [f"{indent}{key}:"] if paths else []
        lines += [f"{indent}  - {path}" for path in paths]
    return "".join(f"{line}\n" for line in lines)


def pdsc_name(about: About) -> str:
    return f"{about.vendor}.{about.name}.pdsc"


def model_pdsc(
    about: About, runtime: About, header: str, sources: Sequence[str],
    selftests: Sequence[str], example: str,
) -> str:  # fmt: skip
    """A model of CMSIS-Pack: itself, and its self-test by choice."""
    name = about.name
    part, test = _part(name), _part(name, " self-test")
    conditions = _needs("runtime", "Runtime", RUNTIME) + _needs(name, "Model", part)
    files = [_file("include", "src/"), _file("header", header)]
    files += [_file("source", path) for path in sources]
    checks = [_file("source", path) for path in selftests]
    checks.append(
        f'<file category="source" attr="template" name={_attribute(example)}'
        f" select={_attribute(f'Self-test of {name}')}/>"
    )
    macro = "#define CRT_WITH_SELFTEST"
    components = _component(about, "Model", part, about.description, files, "runtime")
    components += _component(
        about, "Model", test, f"A stored input of {name}, compared", checks, name, macro
    )
    needs = f'<package vendor="{runtime.vendor}" name="{runtime.name}"'
    return _pdsc(
        about, conditions, components, f'{needs} version="{runtime.version}"/>'
    )


def runtime_pdsc(about: About, header: str, sources: Sequence[str]) -> str:
    """crt of CMSIS-Pack; what leaves is chosen in the project's crt_config.h."""
    files = [_file("include", "src/"), _file("header", header)]
    files += [_file("source", path) for path in sources]
    files.append(
        '<file category="header" attr="config" name="config/crt_config.h"'
        f' version="{about.numbers}"/>'
    )
    macro = '#define CRT_CONFIG_FILE "crt_config.h"'
    text = about.description
    return _pdsc(
        about, "", _component(about, "Runtime", RUNTIME, text, files, "", macro), ""
    )


def _part(name: str, end: str = "") -> str:
    """Csub, of 32 characters: a longer name ends with six digits of its hash."""
    if len(name) + len(end) <= _CSUB:
        return name + end
    digest = hashlib.sha256(name.encode()).hexdigest()[:6]
    return f"{name[: _CSUB - len(end) - 7]}-{digest}{end}"


def _needs(name: str, group: str, part: str) -> str:
    return f"""\
    <condition id={_attribute(name)}>
      <require Cclass="{_CLASS}" Cgroup="{group}" Csub={_attribute(part)}/>
    </condition>
"""


def _file(category: str, path: str) -> str:
    return f'<file category="{category}" name={_attribute(path)}/>'


def _component(
    about: About, group: str, part: str, text: str, files: Sequence[str],
    condition: str, macro: str = "",
) -> str:  # fmt: skip
    """macro: what every file of a project with this component sees."""
    needs = f" condition={_attribute(condition)}" if condition else ""
    lines = [
        f'    <component Cclass="{_CLASS}" Cgroup="{group}" Csub={_attribute(part)}'
        f' Cversion="{about.version}"{needs}>',
        f"      <description>{html.escape(text)}</description>",
        *([f"      <Pre_Include_Global_h>{html.escape(macro)}</Pre_Include_Global_h>"]
          if macro else []),
        "      <files>",
        *(f"        {file}" for file in files),
        "      </files>",
        "    </component>",
    ]  # fmt: skip
    return "".join(f"{line}\n" for line in lines)


def _pdsc(about: About, conditions: str, components: str, needs: str) -> str:
    made = conditions and f"  <conditions>\n{conditions}  </conditions>\n"
    packs = needs and f"    <packages>\n      {needs}\n    </packages>\n"
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<package schemaVersion="1.7.7" xmlns:xs="http://www.w3.org/2001/XMLSchema-instance"
         xs:noNamespaceSchemaLocation="PACK.xsd">
  <vendor>{about.vendor}</vendor>
  <name>{about.name}</name>
  <description>{html.escape(about.description)}</description>
  <url>{html.escape(about.place)}/</url>
  <license>LICENSE</license>
  <releases>
    <release version="{about.version}">As generated</release>
  </releases>
  <requirements>
{packs}    <languages>
      <language name="C" version="99"/>
    </languages>
  </requirements>
{made}  <components>
{components}  </components>
</package>
"""


def _attribute(text: str) -> str:
    return f'"{html.escape(text)}"'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
