"""Packages as the files that ecosystems install: the same bytes on every machine, so
nothing in them is compressed, which each version of zlib does in its own way.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence

from pybuild.ecosystems.about import About
from pybuild.emit.content import Content, pieces

_MOST = 65535  # bytes of a stored block of deflate


def archives(
    about: About, files: Mapping[str, Content], wanted: Sequence[str]
) -> dict[str, bytes]:
    """File name -> content, for the ecosystems wanted."""
    held = {path: b"".join(pieces(files[path])) for path in sorted(files)}
    name, version = about.name, about.version
    found: dict[str, bytes] = {}
    for each in wanted:
        match each:
            case "arduino":
                found[f"{name}-{version}.zip"] = _zip(held, f"{name}/")
            case "cmsis-pack":
                found[f"{about.vendor}.{name}.{version}.pack"] = _zip(held, "")
            case "esp-idf":
                found[f"{name}_{version}.tgz"] = _tar_gz(held, "")
            case _:
                found[f"{name}-{version}.tar.gz"] = _tar_gz(held, f"{name}-{version}/")
    if "meson" in wanted:
        found[f"{name}.wrap"] = _wrap(about).encode()
    return found


def _zip(files: Mapping[str, bytes], top: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(top + path)  # of 1 January 1980
            entry.create_system = 3  # Unix, whatever this machine is
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data)
    return made.getvalue()


def _tar_gz(files: Mapping[str, bytes], top: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(top + path)  # of 1 January 1970, of user 0
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return _gzip(made.getvalue())


def _gzip(data: bytes) -> bytes:
    """RFC 1952 around stored blocks of RFC 1951."""
    parts = [b"\x1f\x8b\x08\0\0\0\0\0\0\xff"]
    for at in range(0, len(data), _MOST):
        block = data[at : at + _MOST]
        size = len(block)
        parts.append(bytes([at + size == len(data)]) + size.to_bytes(2, "little"))
        parts += [(size ^ 0xFFFF).to_bytes(2, "little"), block]
    parts.append(zlib.crc32(data).to_bytes(4, "little"))
    parts.append((len(data) & 0xFFFFFFFF).to_bytes(4, "little"))
    return b"".join(parts)


def _wrap(about: About) -> str:
    """The wrap file for Meson's subprojects/, with the archive in
    subprojects/packagefiles/."""
    directory = f"{about.name}-{about.version}"
    return (
        f"[wrap-file]\ndirectory = {directory}\nsource_filename = {directory}.tar.gz\n"
        f"\n[provide]\n{about.name} = {about.name}_dep\n"
    )
