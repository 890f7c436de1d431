"""Packages as Arduino libraries: what library.properties must say, and sketches built
by Arduino's own builder and by its rules.
"""

from __future__ import annotations

import json
import re
import subprocess
from itertools import islice
from pathlib import Path

import jsonschema
import pytest

from tests.ecosystems.use import (
    FIRST,
    SAID,
    SCORES,
    SKETCH,
    STUBS,
    TWO_SAY,
    of,
    page_files,
    said,
)
from tests.toolchains import ROOT, require

SCHEMA = json.loads((STUBS / "arduino/library-properties.schema.json").read_text())
CORTEX = ("-mcpu=cortex-m4", "-mthumb", "-ffunction-sections", "-fdata-sections")
SELFTEST = "digits/examples/selftest/selftest.ino"


def _properties(library: Path) -> dict[str, str]:
    lines = (library / "library.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("name", ["digits", "floats", "kws", "crt"])
def test_it_is_a_library(packages: Path, name: str) -> None:
    facts = _properties(packages / name)
    jsonschema.validate(facts, SCHEMA)
    assert facts["name"] == name
    for line in (packages / name / "keywords.txt").read_text().splitlines():
        word, tab, kind = line.partition("\t")
        assert word.isidentifier() and tab and kind in ("KEYWORD1", "KEYWORD2")


def test_what_it_says(packages: Path) -> None:
    facts, runtime = _properties(packages / "digits"), _properties(packages / "crt")
    assert facts["version"] == "1.2.0" and facts["license"] == "MIT"
    assert facts["author"] == "Ada Byron <ada@example.org>"
    assert facts["sentence"] == "Digits of 8 x 8 pixels"
    assert facts["depends"] == f"crt (>={runtime['version']})"
    assert "license" not in _properties(packages / "floats")


@pytest.mark.parametrize(
    ("key", "value"),
    [("version", "1.2"), ("category", "Models"), ("name", "Arduino_x"), ("url", "x")],
)
def test_the_schema_refuses(packages: Path, key: str, value: str) -> None:
    facts = _properties(packages / "digits")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**facts, key: value}, SCHEMA)


def flattened(
    sketch: str, libraries: Path, folder: Path, compiler: str, *flags: str
) -> list[Path]:
    """Compiles a sketch by Arduino's rules, with each library that a header leads to.

    Only src/ of a library is on the include path, all C below it is compiled, and a
    library is found by a header in the root of its src/ that could not be found.
    """
    main = folder / "sketch.cpp"
    main.write_text(f"#include <Arduino.h>\n{sketch}")
    found: list[Path] = []
    common = [*flags, "-Wall", "-Werror", "-DARDUINO=10819"]
    cxx = [require(f"{compiler}g++"), "-std=gnu++11", "-fno-exceptions", *common]
    c = [require(f"{compiler}gcc"), "-std=gnu11", *common]
    objects: dict[Path, Path] = {}
    todo = [main]
    while todo:
        source = todo.pop()
        objects[source] = folder / f"{len(objects)}.o"
        tool = cxx if source == main else c
        while True:
            paths = [f"-I{STUBS / 'arduino'}", *(f"-I{lib / 'src'}" for lib in found)]
            words = [*tool, *paths, "-O1", "-c", source, "-o", objects[source]]
            tried = subprocess.run(words, capture_output=True, text=True)
            missing = re.search(r"fatal error: (\S+): No such file", tried.stderr)
            if missing is None:
                assert tried.returncode == 0, tried.stderr
                break
            name = missing[1]
            new = [x for x in libraries.iterdir() if (x / "src" / name).is_file()]
            assert "/" not in name and new, f"no library has {name} in its root"
            found += new
            todo += [p for lib in new for p in sorted((lib / "src").rglob("*.c"))]
    return [*objects.values()]


START = "void setup();\nvoid loop();\n\nint main() { setup(); loop(); }\n"


def _linked(objects: list[Path], folder: Path, *command: object) -> Path:
    start, program = folder / "start.cpp", folder / "program"
    start.write_text(START)
    said([*command, start, *objects, "-o", program])
    return program


@pytest.mark.parametrize("first", FIRST)
def test_two_networks_share_one_runtime(
    packages: Path, tmp_path: Path, first: str
) -> None:
    objects = flattened(of(first, SKETCH), packages, tmp_path, "")
    assert said([_linked(objects, tmp_path, "g++")]) == of(first, TWO_SAY)


def test_the_sketch_prints_its_result(packages: Path, tmp_path: Path) -> None:
    objects = flattened((packages / SELFTEST).read_text(), packages, tmp_path, "")
    assert said([_linked(objects, tmp_path, "g++")]) == SAID + SCORES


def test_the_tutorial(packages: Path, tmp_path: Path) -> None:
    """docs/tutorial-arduino.md: its sketch says what the page says."""
    told = page_files(ROOT / "docs" / "tutorial-arduino.md", tmp_path)
    sketch = (tmp_path / "Arduino/read_digit/read_digit.ino").read_text()
    objects = flattened(sketch, packages, tmp_path, "")
    assert said([_linked(objects, tmp_path, "g++")]) == told


@pytest.mark.parametrize("first", FIRST)
def test_the_sketch_for_an_arm_core(packages: Path, tmp_path: Path, first: str) -> None:
    """Without a macro the self-test is there; what nobody calls is left out."""
    sketch = (packages / of(first, SELFTEST)).read_text()
    compiler = "arm-none-eabi-"
    objects = flattened(sketch, packages, tmp_path, compiler, *CORTEX)
    words = [f"{compiler}gcc", *CORTEX, "--specs=nosys.specs", "-Wl,--gc-sections"]
    program = _linked(objects, tmp_path, *words)
    names = said([require(f"{compiler}nm"), program])
    assert f" T {first}_selftest" in names and "crt_rpc" not in names


# of both, what fits into 8 KB of RAM, where AVR has its constants
SMALL = """\
#include <digits.h>
#include <floats.h>

void setup()
{
    Serial.begin(115200);
    Serial.println(crt_strerror(digits_run(NULL) + floats_run(NULL)));
}

void loop() {}
"""
CTAGS = (
    '"{cmd.path}" -u --language-force=c++ -f - --c++-kinds=svpf --fields=KSTtzns '
    '--line-directives "{source_file}"'
)


@pytest.mark.parametrize("sketch", ["selftest", "two"])
def test_arduino_s_own_builder(packages: Path, tmp_path: Path, sketch: str) -> None:
    """For an ATmega2560: libraries are found, compiled by avr-gcc, and linked."""
    core = Path("/usr/share/arduino/hardware")
    if not (core / "arduino/avr").is_dir():
        require("a core arduino:avr")
    path = packages / SELFTEST
    if sketch == "two":
        path = tmp_path / "two" / "two.ino"
        path.parent.mkdir()
        path.write_text(SMALL)
    build = tmp_path / "build"
    build.mkdir()
    prefs = {
        "tools.ctags.path": "/usr/bin",
        "tools.ctags.cmd.path": require("arduino-ctags"),
        "tools.ctags.pattern": CTAGS,
        # of avr-gcc 5 for C++, which Debian's core wants
        "compiler.cpp.extra_flags": "-DDECIMAL_DIG=__DECIMAL_DIG__",
    }
    said(
        [
            require("arduino-builder"), "-compile", "-hardware", core,
            "-hardware", "/usr/share/arduino-builder", "-tools", "/usr/bin",
            *(f"-prefs={key}={value}" for key, value in prefs.items()),
            "-fqbn", "arduino:avr:mega:cpu=atmega2560", "-libraries", packages,
            "-build-path", build, path,
        ]
    )  # fmt: skip
    libraries = {each.name for each in (build / "libraries").iterdir()}
    assert libraries == {"digits", "crt"} | ({"floats"} if sketch == "two" else set())
    program = build / f"{path.name}.elf"
    assert "Atmel AVR" in said([require("avr-readelf"), "-h", program])
    if sketch == "selftest":
        assert _on_an_atmega2560(program) == (SAID + SCORES).splitlines()


def _on_an_atmega2560(program: Path) -> list[str]:
    """Two lines of its serial port, which simavr says on stderr, in colour, and with a
    point for each control character. A sketch never ends, so it is ended."""
    words = [require("simavr"), "-m", "atmega2560", "-f", "16000000", program]
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        told = [*islice(running.stderr, 2)]
        running.kill()
    return [re.sub(r"\x1b\[\d*m|\.*\n", "", line) for line in told]
