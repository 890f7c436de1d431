"""A pio that has what it would install: SCons as its tool, the platform `native`."""

from __future__ import annotations

import json
import shutil
from importlib import metadata
from pathlib import Path

from tests.ecosystems.use import STUBS


def install(folder: Path) -> dict[str, str]:
    """Into a folder; the environment with which pio finds it there."""
    major, minor, patch = metadata.version("scons").split(".")[:3]
    tool = folder / "packages" / "tool-scons"
    _package(tool, "tool", "tool-scons", f"4.{major}{int(minor):02}{int(patch):02}.0")
    (tool / "scons.py").write_text("import SCons.Script\n\nSCons.Script.main()\n")
    platform = folder / "platforms" / "native"
    shutil.copytree(STUBS / "platformio" / "platform", platform)
    _package(platform, "platform", "native", "1.0.0")
    return {
        "PLATFORMIO_CORE_DIR": str(folder),
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
    }


def _package(folder: Path, kind: str, name: str, version: str) -> None:
    """As pio notes what it has installed."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = {"owner": "platformio", "name": name, "requirements": None, "uri": None}
    facts = {"type": kind, "name": name, "version": version, "spec": {**spec, "id": 1}}
    (folder / ".piopm").write_text(json.dumps(facts))
    if kind == "tool":
        text = {"name": name, "version": version, "description": "SCons"}
        (folder / "package.json").write_text(json.dumps(text))
