"""The tools that made a build: pybuild, by version and hash, and the packages that it
uses.

The hash is the same of a checkout and of an installed wheel.
"""

from __future__ import annotations

import hashlib
import platform
import re
import tomllib
import uuid
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from pybuild import __version__
from pybuild.install import boards, crt_headers, crt_sources, is_checkout
from pybuild.library import Library

NAME = "pybuild-crt"
_LEFT_OUT = {"__pycache__", "_build", "_data"}
_WORD = re.compile(r"[\w.-]+")
_SPDX = re.compile(r"[\w.+-]+")


def tool_facts() -> dict[str, Any]:
    """Version and SHA-256 of pybuild and of crt, and which Python ran them."""
    return {
        "name": NAME,
        "version": __version__,
        "sha256": _digest(_own_files()),
        "crt_sha256": crt_digest(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def crt_digest() -> str:
    """The hash of all files of crt."""
    return _digest((p.name, p) for p in (*crt_headers(), *crt_sources()))


def _own_files() -> Iterator[tuple[str, Path]]:
    """The files of pybuild, crt and boards, by the names that they have in a
    checkout."""
    package = Path(__file__).resolve().parent.parent
    for root, name in ((package, "pybuild"), (boards(), "boards")):
        for path in root.rglob("*"):
            parts = path.relative_to(root).parts
            if path.is_file() and not _LEFT_OUT & set(parts):
                yield f"{name}/{'/'.join(parts)}", path
    for path in (*crt_headers(), *crt_sources()):
        yield f"crt/{path.parent.name}/{path.name}", path


def _digest(files: Iterator[tuple[str, Path]]) -> str:
    """The hash of a list in the form of sha256sum."""
    lines = sorted(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n"
        for name, path in files
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def bill(library: Library, files: dict[str, str]) -> dict[str, Any]:
    """The bill of materials of a build, as CycloneDX 1.6.

    files  what the build writes: path -> SHA-256
    """
    model, facts = library.model, tool_facts()
    parts = [
        _part("application", NAME, __version__, facts["sha256"], "Apache-2.0"),
        _part("library", "crt", __version__, facts["crt_sha256"], "Apache-2.0"),
        _part("machine-learning-model", Path(model.path).name, "", model.digest),
        *(_package(name) for name in sorted(_needed())),
        *(_part("file", name, "", digest) for name, digest in sorted(files.items())),
    ]
    made = _part("firmware", library.name, "", "")
    seed = "".join([library.name, model.digest, *files.values(), facts["sha256"]])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, seed)}",
        "version": 1,
        "metadata": {"component": made},
        "components": parts,
    }


def _part(
    kind: str, name: str, version: str, sha256: str, licence: str = ""
) -> dict[str, Any]:
    made: dict[str, Any] = {"type": kind, "bom-ref": f"{kind}:{name}", "name": name}
    if version:
        made["version"] = version
    if sha256:
        made["hashes"] = [{"alg": "SHA-256", "content": sha256}]
    if licence:
        made["licenses"] = [{"license": {"id": licence}}]
    return made


def _package(name: str) -> dict[str, Any]:
    """A Python package that pybuild uses, as it is installed here."""
    known = metadata.distribution(name)
    made = _part("library", known.metadata["Name"], known.version, "")
    said = _expression(known)
    if _SPDX.fullmatch(said):
        made["licenses"] = [{"license": {"id": said}}]
    elif said:
        made["licenses"] = [{"expression": said}]
    made["purl"] = f"pkg:pypi/{name.lower().replace('_', '-')}@{known.version}"
    return made


def _expression(known: metadata.Distribution) -> str:
    """Its licence as SPDX; "": it does not say."""
    fields = known.metadata.json
    return str(fields.get("license_expression", ""))


def _needed() -> set[str]:
    """The packages that pybuild requires, and those that they require, if installed."""
    found: set[str] = set()
    waiting = [NAME]
    while waiting:
        for line in _asked_by(waiting.pop()):
            match = _WORD.match(line)
            if match and "extra ==" not in line.replace("'", '"'):
                name = match[0].lower().replace("_", "-")
                if name not in found and _is_installed(name):
                    found.add(name)
                    waiting.append(name)
    return found


def _asked_by(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # pybuild itself, in a checkout
        root = Path(__file__).resolve().parents[2]
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        return [str(one) for one in project["project"]["dependencies"]]


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def is_released() -> bool:
    """True if this is an installed wheel: a checkout may hold changes."""
    return not is_checkout()
