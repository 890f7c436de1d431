"""Wake words as a component of ESPHome: its C++ with headers that stand in for
ESPHome's, its YAML by ESPHome's own program where one is installed.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock, call

import pytest
import yaml

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError
from tests.ecosystems.kconfig import settings
from tests.ecosystems.test_arduino import flattened
from tests.ecosystems.test_zephyr import BASE, _valid
from tests.ecosystems.use import STUBS, said
from tests.graphs.networks import keyword_spotting
from tests.snippets import snippets
from tests.toolchains import ROOT, require
from tests.wake.nets import NETS, write_nets

ESPHOME = STUBS / "esphome"


def _component(listeners: Path, folder: Path) -> Path:
    """The tree that ESPHome makes: components below its own sources."""
    source = folder / "src"
    shutil.copytree(ESPHOME / "standin", source)
    into = source / "esphome/components/listen"
    shutil.copytree(listeners / "alone/listen/components/listen", into)
    return source


def test_the_component_hears(
    listeners: Path, phrases: list[str], tmp_path: Path
) -> None:
    """All words in order, its actions, and what is said where samples are lost."""
    source = _component(listeners, tmp_path)
    flags = [
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unused-parameter",
        "-O1",
        f"-I{source}",
    ]
    c = sorted((source / "esphome/components/listen").glob("*.c"))
    said([require("gcc"), *flags, "-c", *c], cwd=tmp_path)
    cpp = [
        ESPHOME / "main.cpp",
        source / "esphome/components/listen/listen_component.cpp",
    ]
    words = [require("g++"), "-std=gnu++20", "-fno-exceptions", *flags, *cpp]
    program = tmp_path / "program"
    said([*words, *sorted(tmp_path.glob("*.o")), "-o", program])
    lines = said([program, listeners / "sound.raw"]).splitlines()
    first = lines[: lines.index("second")]
    assert [x.removeprefix("heard ") for x in first if x[:6] == "heard "] == phrases
    assert "C listen:   VAD: cutoff 0.30, sliding window 5" in first
    assert (
        lines.count(
            "W listen: Samples came faster than the loop took them; some are lost"
        )
        == 1
    )


def test_a_component_is_whole(listeners: Path) -> None:
    """One folder with all that it includes, and nothing of other ecosystems."""
    place = listeners / "alone"
    assert sorted(x.name for x in place.iterdir()) == ["listen", "stop"]
    top = sorted(x.name for x in (place / "listen").iterdir())
    assert top == ["LICENSE", "README.md", "components", "examples", "extras",
                   "report.json"]  # fmt: skip
    both = listeners / "listen/components/listen"
    alone = place / "listen/components/listen"
    assert {x.name: x.read_bytes() for x in both.iterdir()} == {
        x.name: x.read_bytes() for x in alone.iterdir()
    }
    assert (
        'hears "Hello, "you"", "Stopp\u00e9"'
        in (place / "listen/README.md").read_text()
    )


# 256 samples come while loop() runs twice
START = """\
void setup(), loop(), interrupt();

int main()
{
    for (setup();; interrupt(), loop(), loop())
        ;
}
"""


def test_the_sketch_hears(listeners: Path, phrases: list[str], tmp_path: Path) -> None:
    sketch = (listeners / "listen/examples/listen/listen.ino").read_text()
    folder = tmp_path / "libraries"
    for name in ("listen", "crt"):
        shutil.copytree(listeners / name, folder / name)
    objects = flattened(sketch, folder, tmp_path, "")
    start, program = tmp_path / "start.cpp", tmp_path / "program"
    start.write_text(START)
    said([require("g++"), start, *objects, "-o", program])
    env = {"SOUND": str(listeners / "sound.raw")}
    assert said([program], env=env).splitlines() == phrases


def test_the_sample_hears(listeners: Path, phrases: list[str], tmp_path: Path) -> None:
    place = tmp_path / "modules"
    for name in ("listen", "crt"):
        shutil.copytree(listeners / name, place / name)
    sample = place / "listen/samples/listen"
    _valid(sample / "sample.yaml", "sample.schema.yaml")
    own = tmp_path / "Kconfig.zephyr"
    own.write_text("".join(f'config {n}\n\tbool "x"\n\n' for n in OWN))
    modules = [place / name / "zephyr/Kconfig" for name in ("crt", "listen")]
    chosen = (sample / "prj.conf").read_text()
    config = settings([own, *modules], chosen, tmp_path / "dotconfig.cmake")
    build = tmp_path / "b"
    flags = f"-DCMAKE_C_FLAGS=-I{STUBS / 'zephyr/include'}"
    said([require("cmake"), "-S", sample, "-B", build, f"-DDOTCONFIG={config}", flags],
         env=BASE)  # fmt: skip
    said(["cmake", "--build", build, "-j2"])
    done = subprocess.run(
        [build / "app"], env={**os.environ, "SOUND": str(listeners / "sound.raw")},
        capture_output=True, text=True,
    )  # fmt: skip
    told = [f"heard: {phrase}" for phrase in phrases]
    assert done.stdout.splitlines() == [*told, "stopped: no error"]


# of Zephyr itself, that the sample's prj.conf names
OWN = ("STDOUT_CONSOLE", "AUDIO", "AUDIO_DMIC")


# ---- by the command, and what is refused ----------------------------------------


def test_the_command(
    listeners: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same files as in Python."""
    nets = [str(listeners / f"nets/{name}.tflite") for name in NETS]
    words = ["build", *nets, "--front", "micro_frontend", "--package", "esphome"]
    assert main([*words, "--name", "listen", "-o", str(tmp_path)]) == 0
    assert f"wrote {tmp_path / 'listen'}" in capsys.readouterr().out
    made, alone = tmp_path / "listen/components", listeners / "alone/listen/components"
    assert {x.name: x.read_bytes() for x in made.rglob("*.c")} == {
        x.name: x.read_bytes() for x in alone.rglob("*.c")
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--package esphome: is for nets that hear the features of micro wake word."
             " Hint: --front micro_frontend"),
        (("--front", "front.toml"), "--package esphome: is for nets that hear"),
        (("--front", "micro_frontend", "--exclusive", "hello,stop"),
         "--exclusive: does not apply to --package esphome"),
        (("--front", "micro_frontend", "--name", "hello=stop"),
         "stop.tflite: another model is named 'stop' too"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(
    listeners: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    words: Sequence[str], message: str,
) -> None:  # fmt: skip
    nets = [str(listeners / f"nets/{name}.tflite") for name in ("hello", "stop")]
    more = ["--package", "esphome", "-o", str(tmp_path / "out")]
    code = 2 if message.startswith("stop") else 64
    assert main(["build", *nets, *words, *more]) == code
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_other_models_are_no_component(tmp_path: Path) -> None:
    made = keyword_spotting().model().build(name="kws")
    with pytest.raises(BuildError, match="is for wake words, which hear features"):
        made.write_packages(tmp_path, package="esphome")


def _component_module(
    listeners: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], MagicMock]:
    """The component's Python with an ESPHome that notes what is asked of it."""
    esphome = MagicMock()
    esphome.codegen.register_component = AsyncMock()
    esphome.components.microphone.microphone_source_to_code = AsyncMock()
    esphome.automation.build_automation = AsyncMock()
    for name in ("", ".codegen", ".components", ".config_validation", ".const"):
        part = esphome
        for word in name.split(".")[1:]:
            part = getattr(part, word)
        monkeypatch.setitem(sys.modules, f"esphome{name}", part)
    file = listeners / "alone/listen/components/listen/__init__.py"
    known: dict[str, Any] = {}
    exec(compile(file.read_text(), file, "exec"), known)
    return known, esphome


def test_the_component_s_code(listeners: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cutoffs and windows are those of the manifests, where the YAML has no others."""
    known, esphome = _component_module(listeners, monkeypatch)
    assert known["WORDS"] == {"hello": (0, 153, 5), "stop": (1, 127, 3)}
    assert known["VAD"] == (76, 5) and known["WINDOW_MAX"] == 10
    stop = {known["CONF_MODEL"]: "stop", known["CONF_PROBABILITY_CUTOFF"]: 0.9}
    config = {
        known["CONF_ID"]: "id", known["CONF_MICROPHONE"]: {},
        known["CONF_STOP_AFTER_DETECTION"]: False, known["CONF_MODELS"]: [stop],
        known["CONF_VAD"]: {known["CONF_SLIDING_WINDOW_SIZE"]: 7},
        known["CONF_ON_WAKE_WORD_DETECTED"]: {},
    }  # fmt: skip
    asyncio.run(known["to_code"](config))
    component = esphome.codegen.new_Pvariable.return_value
    assert component.set_net.call_args_list == [call(1, 229, 3), call(2, 76, 7)]
    assert component.enable.call_args_list == [call(0, False)]
    component.set_stop_after_detection.assert_called_once_with(False)
    esphome.automation.build_automation.assert_awaited_once()
    component.enable.reset_mock()
    asyncio.run(known["to_code"](config | {known["CONF_VAD"]: False}))
    assert component.enable.call_args_list == [call(0, False), call(2, False)]


def test_names_of_actions(listeners: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, esphome = _component_module(listeners, monkeypatch)
    calls = esphome.automation.register_action.call_args_list
    names = [f"listen.{n}" for n in ("start", "stop", "enable_model", "disable_model")]
    assert [one.args[0] for one in calls] == names


PAGE = ROOT / "docs" / "wake-words.md"


def page_of(tmp_path: Path) -> tuple[Path, str]:
    """What the page's command makes of nets of those names, and the page's YAML."""
    for mine, theirs in (("hello", "okay_nabu"), ("voice", "vad")):
        made = write_nets(tmp_path / "made", (mine,))[mine]
        for suffix in (".tflite", ".json"):
            made.with_suffix(suffix).rename(tmp_path / f"{theirs}{suffix}")
    command, code = (b.text for b in snippets(ROOT, PAGE) if b.said("run by"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said(shlex.split(command), tmp_path, {"PATH": path})
    (tmp_path / "page.c").write_text(code)
    (block,) = [b.text for b in snippets(ROOT, PAGE) if b.language == "yaml"]
    return tmp_path / "build/lib/wake/components", block


def test_the_page(tmp_path: Path) -> None:
    """Its command runs, its C compiles, its YAML has keys that the component has."""
    components, block = page_of(tmp_path)
    words = ["-Wall", "-Werror", "-fsyntax-only", f"-I{components / 'wake'}"]
    said([require("gcc"), *words, tmp_path / "page.c"])
    told = yaml.safe_load(block)
    assert (tmp_path / told["external_components"][0]["source"]["path"]).is_dir()
    component = (components / "wake/__init__.py").read_text()
    for key in (*told["wake"], *told["wake"]["models"][0]):
        assert f'"{key}"' in component or f"CONF_{key.upper()}" in component


def test_pybuild_says_which_packages() -> None:
    with pytest.raises(BuildError, match="esphome"):
        pybuild.build(keyword_spotting().model()).write_packages(".", package="esphom")
