"""The files of a model's package and of the runtime's, for the ecosystems asked for.

src/ is on the include path of each of them, and all C in it is compiled: src/NAME.h,
src/NAME.c, src/crt.h, src/crt/. The runtime has the files of all ecosystems whatever
is asked for: the packages of several builds lie beside one and the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pybuild import __version__
from pybuild.ecosystems import manifests
from pybuild.ecosystems.about import RUNTIME, About, about_model, about_runtime
from pybuild.ecosystems.esphome import component_files
from pybuild.ecosystems.examples import (
    ESP_IDF,
    PROGRAM,
    TEMPLATES,
    ZEPHYR,
    program,
    sketch,
)
from pybuild.ecosystems.rust import crate_files, refuse, runtime_crate
from pybuild.ecosystems.words import (
    ZEPHYR_SAMPLE,
    Words,
    arduino_listener,
    zephyr_listener,
)
from pybuild.emit.c.image import ImageTables
from pybuild.emit.content import Content, whole
from pybuild.emit.tables.tables import Tables
from pybuild.errors import BuildError
from pybuild.install import crt_headers, crt_sources, licence_text
from pybuild.options.option import keywords, plain
from pybuild.options.packages import ECOSYSTEMS, ESPHOME, RUST, PackageOptions
from pybuild.package.folder import REPORT
from pybuild.package.tree import filled
from pybuild.records import dataclass

Files = dict[str, Content]

# examples, by the ecosystem that builds them
_SKETCH = "examples/selftest/selftest.ino"
_PROGRAM = "examples/program/src/main.c"
_ESP = "examples/esp_idf"
_SAMPLE = "samples/selftest"
_CRT_INCLUDE = re.compile(r'^#include "crt/', re.MULTILINE)
_CONFIG = """\
/* crt_config.h: what leaves crt, and the models of this project with it. */
//-------- <<< Use Configuration Wizard in Context Menu >>> --------------------
// <q> A function after each layer
#define CRT_CONFIG_HOOK 1
// <q> Names of models, inputs and outputs in flash
#define CRT_CONFIG_NAMES 1
//------------- <<< end of configuration section >>> ---------------------------
#if !CRT_CONFIG_HOOK
#define CRT_NO_HOOK
#endif
#if !CRT_CONFIG_NAMES
#define CRT_NO_NAMES
#endif
"""


@dataclass(frozen=True)
class Made:
    """A build, as packages see it.

    generated  the files of its models
    values     of an example's templates
    facts      of its report.json
    mlf        TVM's archive of it; Errors  BuildError for several models
    words      wake words, if that is what it hears
    target     that it is built for
    image      of several models
    """

    name: str
    generated: Mapping[str, Content]
    values: Mapping[str, str]
    models: Sequence[Tables]
    facts: Mapping[str, Any]
    is_image: bool
    mlf: Callable[[], bytes]
    words: Words | None = None
    target: object = None
    image: ImageTables | None = None


def packages(made: Made, asked: PackageOptions) -> dict[str, tuple[About, Files]]:
    """Name -> what it says of itself, and path in its folder -> content.

    Errors  BuildError for what an ecosystem would refuse, for a build with an object
    """
    about = about_model(made.name, asked)
    objects = [path for path in made.generated if path.endswith(".o")]
    if objects:
        what = f"{objects[0]} is for one core; packages are sources"
        raise BuildError("--emit", what, "leave out --emit obj")
    if RUST in asked.package:
        has_api = any(path.startswith("tvm/") for path in made.generated)
        refuse(made.name, made.models, made.image, has_api)
    runtime = about_runtime(__version__)
    found = {about.name: (about, model_files(made, about, runtime, asked))}
    if asked.package != (ESPHOME,):  # a component has its own runtime
        found[RUNTIME] = runtime, runtime_files(runtime)
    return found


def model_files(
    made: Made, about: About, runtime: About, asked: PackageOptions
) -> Files:
    """The files of a model's package, for the ecosystems in asked.package."""
    files = _sources(made)
    if ESPHOME in asked.package:
        if asked.package == (ESPHOME,):
            files = {p: c for p, c in files.items() if not p.startswith("src/")}
        files |= component_files(made.name, made.generated, made.words)
    src = sorted(path for path in files if path.startswith("src/"))
    c = [path for path in src if path.endswith(".c")]
    headers = [path for path in src if path.endswith(".h")]
    values = {
        **_values(about, c), "crt_version": runtime.version,
        "headers": " ".join(headers),
    }  # fmt: skip
    for name in ECOSYSTEMS:
        if name not in asked.package:
            continue
        files |= _OF_MODEL[name](made, about, runtime, values)
    if RUST in asked.package:
        target, image = made.target, made.image
        files |= crate_files(about, runtime, made.models, image, target, c)
    files["LICENSE"] = _licence(about)
    files["README.md"] = _readme(made, about, bool(src))
    facts = {**made.facts, "package": plain(keywords(asked))}
    files[REPORT] = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    return files


def _sources(made: Made) -> Files:
    """C and headers in src/, all else beside it."""
    files: Files = {}
    for path, content in made.generated.items():
        if not path.endswith((".c", ".h")):
            files[path] = content
            continue
        if path.endswith(".h"):  # of several models any may be the first
            text = whole({path: content})[path]
            content = _CRT_INCLUDE.sub('#include "crt.h"\n#include "crt/', text, 1)
        files[f"src/{path}"] = content
    return files


def _values(about: About, sources: Sequence[str]) -> dict[str, str]:
    """The values for the templates of build files."""
    return {
        "name": about.name,
        "upper": about.name.upper(),
        "version": about.version,
        "numbers": about.numbers,
        "licence_word": about.licence or "unknown",
        "lines": "\n".join(f"    {path}" for path in sources),
        "above": "\n".join(f"    ../{path}" for path in sources),
        "quoted": ",\n".join(f"  '{path}'" for path in sources),
        "continued": " \\\n".join(f"    {path}" for path in sources),
    }


def _filled(room: str, template: str, values: Mapping[str, str]) -> str:
    return filled(TEMPLATES / room / f"{template}.in", values)


# ---- of a model, by ecosystem ---------------------------------------------------

Values = Mapping[str, str]


def _arduino(made: Made, about: About, runtime: About, values: Values) -> Files:
    details = f"Functions and sizes are in {made.name}.h. The runtime is the library "
    details += f"{runtime.name}, one for all networks."
    header, names = f"{made.name}.h", [m.name for m in made.models]
    words = [f"{n}_{word}" for n in names for word in ("init", "reset", "run")]
    return {
        "library.properties": manifests.properties(about, header, details, runtime),
        "keywords.txt": manifests.keywords([made.name, *_others(made)], words),
        _SKETCH: sketch(made.values, made.models, made.is_image),
        **(arduino_listener(made.name) if made.words else {}),
    }


def _others(made: Made) -> list[str]:
    return [m.name for m in made.models if m.name != made.name]


def _platformio(made: Made, about: About, runtime: About, values: Values) -> Files:
    header = f"{made.name}.h"
    return {
        "library.json": manifests.library_json(about, header, [_PROGRAM]),
        _PROGRAM: program(PROGRAM, made.values, made.is_image),
        "examples/program/platformio.ini": _filled("model", "platformio.ini", values),
    }


def _esp_idf(made: Made, about: About, runtime: About, values: Values) -> Files:
    name = made.name
    test = f"CONFIG_CRT_MODEL_{name.upper()}_SELFTEST=y\n"
    register = 'idf_component_register(SRCS "main.c" REQUIRES ' + f"{name})\n"
    return {
        "CMakeLists.txt": _filled("model", "CMakeLists.txt", values),
        f"cmake/{name}Config.cmake": _filled("model", "Config.cmake", values),
        "idf_component.yml": manifests.component_yml(about),
        "Kconfig": _filled("model", "Kconfig", values),
        f"{_ESP}/CMakeLists.txt": _filled("model", "esp-CMakeLists.txt", values),
        f"{_ESP}/sdkconfig.defaults": test,
        f"{_ESP}/main/CMakeLists.txt": register,
        f"{_ESP}/main/main.c": program(ESP_IDF, made.values, made.is_image),
        _PROGRAM: program(PROGRAM, made.values, made.is_image),
    }


def _zephyr(made: Made, about: About, runtime: About, values: Values) -> Files:
    samples = [_SAMPLE, ZEPHYR_SAMPLE] if made.words else [_SAMPLE]
    return {
        **(zephyr_listener(made.name) if made.words else {}),
        "zephyr/module.yml": manifests.module_yml(about, samples, [runtime.name]),
        "zephyr/CMakeLists.txt": _filled("model", "zephyr-CMakeLists.txt", values),
        "zephyr/Kconfig": _filled("model", "zephyr-Kconfig", values),
        f"{_SAMPLE}/CMakeLists.txt": _filled("model", "zephyr-sample.txt", values),
        f"{_SAMPLE}/prj.conf": _filled("model", "prj.conf", values),
        f"{_SAMPLE}/sample.yaml": _filled("model", "sample.yaml", values),
        f"{_SAMPLE}/src/main.c": program(ZEPHYR, made.values, made.is_image),
    }


def _cmsis_pack(made: Made, about: About, runtime: About, values: Values) -> Files:
    c = sorted(path for path in made.generated if path.endswith(".c"))
    tests = [f"src/{path}" for path in c if path.endswith("_selftest.c")]
    own = [f"src/{path}" for path in c if not path.endswith("_selftest.c")]
    header = f"src/{made.name}.h"
    text = manifests.model_pdsc(about, runtime, header, own, tests, _PROGRAM)
    return {
        manifests.pdsc_name(about): text,
        _PROGRAM: program(PROGRAM, made.values, made.is_image),
    }


def _cmake(made: Made, about: About, runtime: About, values: Values) -> Files:
    return {
        "CMakeLists.txt": _filled("model", "CMakeLists.txt", values),
        f"cmake/{made.name}Config.cmake": _filled("model", "Config.cmake", values),
        _PROGRAM: program(PROGRAM, made.values, made.is_image),
    }


def _meson(made: Made, about: About, runtime: About, values: Values) -> Files:
    return {
        "meson.build": _filled("model", "meson.build", values),
        "meson_options.txt": _filled("model", "meson_options.txt", values),
        _PROGRAM: program(PROGRAM, made.values, made.is_image),
    }


def _make(made: Made, about: About, runtime: About, values: Values) -> Files:
    return {
        "Makefile": _filled("model", "Makefile", values),
        f"{made.name}.mk": _filled("model", "name.mk", values),
        _PROGRAM: program(PROGRAM, made.values, made.is_image),
    }


_OF_MODEL = dict(
    zip(
        ECOSYSTEMS,
        (_arduino, _platformio, _esp_idf, _zephyr, _cmsis_pack, _cmake, _meson, _make),
        strict=True,
    )
)


# ---- of the runtime -------------------------------------------------------------


def runtime_files(about: About) -> Files:
    """The files of the runtime's package, for all ecosystems."""
    files: Files = {"src/crt.h": _filled("crt", "crt.h", {})}
    for path in (*crt_headers(), *crt_sources()):
        files[f"src/crt/{path.name}"] = path.read_text(encoding="utf-8")
    c = sorted(path for path in files if path.endswith(".c"))
    values = _values(about, c)
    symbols = _filled("crt", "options.Kconfig", values)
    details = "Neural networks that pybuild makes for microcontrollers want it: one "
    details += "library for all of them."
    shown = ("graph_run", "graph_set_hook", "strerror")
    files |= {
        "library.properties": manifests.properties(about, "crt.h", details, None),
        "keywords.txt": manifests.keywords(
            ["crt_graph"], [f"crt_{word}" for word in shown]
        ),
        "library.json": manifests.library_json(about, "crt.h", []),
        "CMakeLists.txt": _filled("crt", "CMakeLists.txt", values),
        "cmake/crtConfig.cmake": _filled("crt", "Config.cmake", values),
        "cmake/crtLanguage.cmake": _filled("crt", "Language.cmake", values),
        "idf_component.yml": manifests.component_yml(about),
        "Kconfig": f'menu "crt, for neural networks"\n\n{symbols}\nendmenu\n',
        "zephyr/module.yml": manifests.module_yml(about, [], []),
        "zephyr/CMakeLists.txt": _filled("crt", "zephyr-CMakeLists.txt", values),
        "zephyr/Kconfig": 'config CRT\n\tbool "crt, the runtime of neural networks"\n\n'
        f"if CRT\n\n{symbols}\nendif # CRT\n",
        manifests.pdsc_name(about): manifests.runtime_pdsc(about, "src/crt.h", c),
        "config/crt_config.h": _CONFIG,
        "meson.build": _filled("crt", "meson.build", values),
        "meson_options.txt": _filled("crt", "meson_options.txt", values),
        "crt.mk": _filled("crt", "crt.mk", values),
        **runtime_crate(about, c),
        "LICENSE": licence_text(),
        "README.md": f"# crt {about.version}\n\n{about.description}. Packages of "
        "networks lie beside this folder, and share it.\n",
    }
    abi = re.search(r"#define CRT_ABI (\d+)", str(files["src/crt/abi.h"]))
    assert abi, "abi.h says which ABI it is"
    facts = {"name": RUNTIME, "version": about.version, "abi": int(abi[1])}
    return {**files, REPORT: json.dumps(facts, indent=2) + "\n"}


# ---- for people -------------------------------------------------------------------


def _licence(about: About) -> str:
    text = (
        f"The network {about.name}, that is the numbers in src/{about.name}_weights.c"
    )
    text += ", "
    if about.licence:
        text += f"is under the licence {about.licence} (https://spdx.org/licenses).\n"
    else:
        text += "is under the licence of its owner: none was\nnamed when this package "
        text += "was built (crt build --licence SPDX).\n"
    return text + (
        "\nThe code around it was written by pybuild, whose kernels and runtime are "
        "under\nApache-2.0 (the LICENSE of the package crt).\n"
    )


def _readme(made: Made, about: About, has_sources: bool) -> str:
    lines = [f"# {about.name} {about.version}", "", f"{about.description}."]
    if "ram" in made.facts:
        ram, flash = made.facts["ram"], made.facts["flash"]
        lines[-1] += f" RAM {ram['arena'] + ram['instance']:,} bytes, constants "
        lines[-1] += f"{flash['weights'] + flash['tables']:,} bytes."
    if made.words:
        lines += ["", *_of_words(about.name, made.words)]
    if has_sources:
        lines += [
            "",
            f"`src/{about.name}.h` has all functions and sizes. The package `crt` "
            "beside this folder is the",
            "runtime, one for all networks of a program.",
        ]
    lines += ["", "Generated by pybuild: build it anew, do not edit it."]
    return "\n".join([*lines, ""])


def _of_words(name: str, words: Words) -> list[str]:
    phrases = ", ".join(f'"{word.phrase}"' for word in words.words)
    return [
        f"It hears {phrases}. `components/{name}` is a component of ESPHome, "
        "`examples/esphome/listen.yaml`",
        f"shows its YAML; `{name}_words.h` has the functions.",
    ]
