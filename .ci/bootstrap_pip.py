"""Puts pip into the environment of the running Python, which has no ensurepip.

A pip outside does it where there is one; else pip's own wheel is fetched from
the package index that the machine is configured for, and installs itself.
"""

from __future__ import annotations

import configparser
import hashlib
import html
import os
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

LINK = re.compile(r"<a\s([^>]*)>\s*(pip-(\d+(?:\.\d+)*)-py3-none-any\.whl)\s*</a>")


def config(key: str) -> str:
    """pip's setting of this name: environment first, then pip.conf files."""
    value = os.environ.get(f"PIP_{key.upper().replace('-', '_')}", "")
    home = Path.home()
    files = [
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        home / ".config" / "pip" / "pip.conf",
        Path(os.environ.get("PIP_CONFIG_FILE", os.devnull)),
    ]
    parser = configparser.RawConfigParser()
    parser.read(files)
    return value or parser.get("global", key, fallback="")


def fetch(url: str) -> bytes:
    context = ssl.create_default_context(cafile=config("cert") or None)
    with urllib.request.urlopen(url, timeout=60, context=context) as answer:
        data: bytes = answer.read()
        return data


def suits(attributes: str) -> bool:
    """Whether data-requires-python (">=3.9") allows this Python."""
    text = html.unescape(attributes)
    least = re.search(r'data-requires-python="[^"]*>=\s*(\d+)\.(\d+)', text)
    return least is None or sys.version_info >= (int(least[1]), int(least[2]))


def pip_wheel(folder: Path) -> Path:
    """The newest pip of the index that runs here, its hash checked."""
    index = (config("index-url") or "https://pypi.org/simple").rstrip("/") + "/pip/"
    found = [
        (tuple(map(int, version.split("."))), name, attributes)
        for attributes, name, version in LINK.findall(fetch(index).decode())
        if suits(attributes)
    ]
    if not found:
        sys.exit(f"{index} offers no pip for this Python")
    name: str
    _, name, attributes = max(found)
    href = re.search(r'href="([^"]+)"', attributes)
    assert href is not None
    address, _, wanted = html.unescape(href[1]).partition("#sha256=")
    data = fetch(urllib.parse.urljoin(index, address))
    if wanted and hashlib.sha256(data).hexdigest() != wanted:
        sys.exit(f"{name}: the hash is not the one of the index")
    (folder / name).write_bytes(data)
    return folder / name


def main() -> None:
    outside = ["python3", "-m", "pip", "--python", sys.executable, "install", "-q"]
    if subprocess.run([*outside, "pip"], capture_output=True).returncode == 0:
        return
    with tempfile.TemporaryDirectory() as folder:
        wheel = pip_wheel(Path(folder))
        command = [sys.executable, f"{wheel}/pip", "install", "-q", "--no-index"]
        subprocess.run([*command, str(wheel)], check=True)


if __name__ == "__main__":
    main()
