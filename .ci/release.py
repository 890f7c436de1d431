"""Makes what is published of a version: sdist, the wheel for every system and its
SBOM in dist/, all checked. With VERSION first: writes it into pybuild/VERSION and
CHANGELOG.md, and commits that. The same commit gives the same bytes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

from packaging.utils import parse_sdist_filename, parse_wheel_filename

ROOT = Path(__file__).resolve().parent.parent
VERSION = ROOT / "pybuild" / "VERSION"
DIST = ROOT / "dist"
PIP = ["-m", "pip", "install", "-q", "--disable-pip-version-check"]


def call(*words: object, **more: str) -> str:
    """What a program printed; ends the release where it fails."""
    command = [str(word) for word in words]
    print(f"dev: {' '.join(command)}", file=sys.stderr, flush=True)
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\ndev: failed: {command[0]}")
    return done.stdout


def must_be_committed() -> None:
    changed = call("git", "status", "--porcelain", "--untracked-files=no")
    if changed:
        sys.exit(f"{changed}dev: a release is made of what is committed")


def set_version(version: str) -> None:
    """In its one place, with a section of CHANGELOG.md."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"dev: '{version}' is not a version such as 1.20.3")
    VERSION.write_bytes(f"{version}\n".encode())
    day = call("git", "log", "-1", "--format=%cs").strip()
    call("towncrier", "build", "--yes", "--version", version, "--date", day)
    call("git", "add", "--", VERSION, "CHANGELOG.md", "changes")
    call("git", "commit", "-q", "-m", f"Version {version}")


def build(folder: Path) -> tuple[Path, Path]:
    """sdist, and the wheel that is made of it."""
    time = call("git", "log", "-1", "--format=%ct").strip()
    words = ("-m", "build", "-n", "-C", "systems=all", "-o", folder, ROOT)
    call(sys.executable, *words, SOURCE_DATE_EPOCH=time)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


def check(sdist: Path, wheel: Path) -> None:
    """Whether an index takes them, and whether they are of this version."""
    call("twine", "check", "--strict", sdist, wheel)
    # alike may be small files of boards; libraries of crt are no modules
    call("check-wheel-contents", "--ignore", "W002,W004", wheel)
    version = VERSION.read_text(encoding="utf-8").strip()
    name, of_wheel, _, tags = parse_wheel_filename(wheel.name)
    same = (name, str(of_wheel)) == ("pybuild-crt", version)
    if not same or (name, of_wheel) != parse_sdist_filename(sdist.name):
        sys.exit(f"dev: {wheel.name}, {sdist.name}: not both of {version}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(n for n in names if n.endswith(".dist-info/WHEEL"))
        facts = BytesParser().parsebytes(archive.read(info))
    said = (facts.get_all("Tag"), facts["Root-Is-Purelib"])
    if said != (["py3-none-any"], "true") or {str(tag) for tag in tags} != {said[0][0]}:
        sys.exit(f"dev: {wheel.name}: tags {said} are not those of any system")
    binary = re.compile(r"\.(so|dll|dylib|pyd)$")
    found = [n for n in names if binary.search(n)]
    if any(not n.startswith("pybuild/_data/lib/") for n in found):
        sys.exit(f"dev: {wheel.name}: what Python imports is no binary: {found}")


def write_bom(wheel: Path) -> Path:
    """What an environment with the wheel holds, as CycloneDX."""
    version = VERSION.read_text(encoding="utf-8").strip()
    file = wheel.parent / f"pybuild_crt-{version}.cdx.json"
    with tempfile.TemporaryDirectory() as folder:
        call(sys.executable, "-m", "venv", "--without-pip", folder)
        python = Path(folder) / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", python, *PIP[2:]]
        given = ("-c", ROOT / ".ci" / "constraints.txt")
        call(*pip, *given, f"pybuild-crt @ {wheel.as_uri()}")
        # else the bill would say where on this machine the wheel was
        for path in Path(folder).rglob("pybuild_crt-*.dist-info/direct_url.json"):
            path.unlink()
        words = ("--output-reproducible", "--of", "JSON", "-o", file, python)
        call("cyclonedx-py", "environment", *words)
    return file


def main(arguments: list[str]) -> int:
    if len(arguments) > 1 or arguments[:1] == ["--help"]:
        sys.exit("usage: ./dev release [VERSION]")
    must_be_committed()
    for version in arguments:
        set_version(version)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sdist, wheel = build(folder)
        check(sdist, wheel)
        made = (sdist, wheel, write_bom(wheel))
        DIST.mkdir(exist_ok=True)
        for path in made:
            shutil.copy(path, DIST)
            print(f"dist/{path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
