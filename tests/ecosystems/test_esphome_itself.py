"""Wake words by ESPHome's own program, where one is installed: it takes the YAML, and
what it generates for this machine hears.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.ecosystems.test_esphome import ESPHOME, page_of
from tests.ecosystems.use import said
from tests.toolchains import require


def _esphome() -> str:
    """The program, or skips the test: with what it needs it has 250 MB, and pins other
    versions than the project's."""
    found = os.environ.get("ESPHOME") or shutil.which("esphome")
    if not found:
        pytest.skip("esphome is not installed: pip install esphome elsewhere, and "
                    "ESPHOME=path of its command")  # fmt: skip
    return found


CHIP = {
    "esphome": {"name": "listener"},
    "esp32": {"variant": "esp32c3", "framework": {"type": "esp-idf"}},
    "logger": {},
}
BAD = {
    "{'model': 'other'}": "Unknown value 'other'",
    "{'model': 'stop', 'probability_cutoff': '130%'}": "value must be at most 1.",
    "{'model': 'stop', 'sliding_window_size': 99}": "value must be at most 10",
    "['stop', 'stop']": "the model stop is named twice",
}


def _written(folder: Path, listeners: Path, **more: object) -> Path:
    """The package's own YAML for an ESP32-C3, with more for the component."""
    text = (listeners / "alone/listen/examples/esphome/listen.yaml").read_text()
    told = yaml.safe_load(text)
    told |= CHIP
    path = listeners / "alone/listen/components"
    told["external_components"][0]["source"]["path"] = str(path)
    told["listen"] |= more
    (folder / "listen.yaml").write_text(yaml.safe_dump(told, sort_keys=False))
    return folder / "listen.yaml"


def test_esphome_takes_the_page_s_yaml(tmp_path: Path) -> None:
    program = _esphome()
    components, block = page_of(tmp_path)
    text = (components.parent / "examples/esphome/listen.yaml").read_text()
    told = yaml.safe_load(text) | CHIP | yaml.safe_load(block)
    (tmp_path / "listen.yaml").write_text(yaml.safe_dump(told, sort_keys=False))
    assert "stop_after_detection" in said([program, "config", "listen.yaml"], tmp_path)


def test_esphome_takes_its_yaml(listeners: Path, tmp_path: Path) -> None:
    program = _esphome()
    told = said([program, "config", _written(tmp_path, listeners)])
    assert "stop_after_detection: true" in told
    for models, message in BAD.items():
        file = _written(tmp_path, listeners, models=yaml.safe_load(models))
        done = subprocess.run([program, "config", file], capture_output=True, text=True)
        assert done.returncode != 0 and message in done.stdout + done.stderr


HOST = """\
esphome: {{name: listener, on_boot: {{priority: -200, then: [listen.start]}}}}
host:
logger: {{level: NONE}}
external_components:
  - source: {{type: local, path: {package}}}
  - source: {{type: local, path: {tests}}}
  - source: {{type: local, path: {audio}}}
microphone: [{{platform: file_microphone, id: mic}}]
listen:
  microphone: mic
  models: [hello, {{model: stop, sliding_window_size: 3}}]
  stop_after_detection: false
  on_wake_word_detected:
    - lambda: 'printf("%s\\n", wake_word.c_str());'
    - if: {{condition: listen.is_running, then: [{{listen.enable_model: hello}}]}}
    - if:
        condition: {{not: [{{listen.model_is_enabled: stop}}]}}
        then: [listen.stop, {{listen.disable_model: hello}}]
"""


def _host_audio(program: str, folder: Path) -> Path:
    """ESPHome's component `audio` without its limit to ESP32, which tests need not
    have."""
    python = Path(Path(program).read_text().splitlines()[0].removeprefix("#!"))
    found = said([python, "-c", "import esphome; print(esphome.__path__[0])"])
    there = Path(found.strip()) / "components/audio"
    (folder / "audio").mkdir(parents=True)
    for name in ("audio.h", "audio.cpp"):
        shutil.copy(there / name, folder / "audio")
    text = (there / "__init__.py").read_text().replace("    cv.only_on_esp32,\n", "")
    text += "\n\nAUTO_LOAD = []\n\n\nasync def to_code(config):\n    pass\n"
    (folder / "audio/__init__.py").write_text(text)
    return folder


def test_esphome_s_own_sources(
    listeners: Path, phrases: list[str], tmp_path: Path
) -> None:
    """What ESPHome generates for this machine compiles with its core, and hears."""
    program = _esphome()
    audio = _host_audio(program, tmp_path / "host")
    file = tmp_path / "listen.yaml"
    package = listeners / "alone/listen/components"
    tests = ESPHOME / "components"
    file.write_text(HOST.format(package=package, tests=tests, audio=audio))
    said([program, "compile", "--only-generate", file])
    source = tmp_path / ".esphome/build/listener/src"
    log = "-DESPHOME_LOG_LEVEL=ESPHOME_LOG_LEVEL_NONE"
    rules = (ESPHOME / "host.mk").read_text().format(log=log, python=sys.executable)
    (source / "host.mk").write_text(rules)
    said([require("make"), "-f", "host.mk", "-j2"], cwd=source)
    env = {"FILE_MICROPHONE": str(listeners / "sound.raw")}
    assert said([source / "program"], env=env).splitlines() == phrases
