"""The description of a package, in the words of every ecosystem."""

from __future__ import annotations

import re

from pybuild.errors import BuildError, Problem
from pybuild.options.packages import PackageOptions
from pybuild.records import dataclass

RUNTIME = "crt"
# semver.org, of which CMSIS-Pack and Arduino want all three numbers
_VERSION = re.compile(
    r"(\d+\.\d+\.\d+)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?", flags=re.ASCII
)
# SPDX: identifiers, and AND, OR, WITH between them
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")
_URL = re.compile(r"https?://[^\s\"'<>]+")
# PlatformIO's limits: a name of 50, a version of 20, a description of 255 characters
_MOST = {"--name": 50, "--package-version": 20, "--description": 255, "--author": 100}
_NOBODY = "unknown"


@dataclass(frozen=True)
class About:
    """A package: its name is a C identifier, and that of its folder.

    licence   of SPDX; "": none was named
    numbers   the version without what follows a dash
    vendor    of a CMSIS-Pack: letters and digits of the author
    """

    name: str
    version: str
    licence: str
    description: str
    author: str
    url: str

    @property
    def numbers(self) -> str:
        return self.version.partition("-")[0]

    @property
    def vendor(self) -> str:
        known = self.author.partition("<")[0] if self.author else ""
        return re.sub(r"[^A-Za-z0-9]", "", known) or "pybuild"

    @property
    def maker(self) -> str:
        """The author, for ecosystems that require one."""
        return self.author or _NOBODY

    @property
    def place(self) -> str:
        """The URL, for ecosystems that require one; `.invalid` leads nowhere, by RFC
        2606."""
        return self.url or f"https://{self.name.replace('_', '-')}.invalid"


def about_model(name: str, asked: PackageOptions) -> About:
    """The package description of a model.

    Errors  BuildError with everything that an ecosystem would refuse
    """
    found = [*_faults(name, asked)]
    if found:
        raise BuildError.of(found)
    what = asked.description or f"The neural network {name} as static C"
    return About(name, asked.version, asked.licence, what, asked.author, asked.url)


def about_runtime(version: str) -> About:
    """The package description of crt, whose version is pybuild's."""
    numbers = re.match(r"\d+\.\d+\.\d+", version)
    assert numbers, "pybuild's version begins with three numbers"
    what = "The runtime of neural networks that pybuild has made: set, run, get"
    return About(RUNTIME, numbers[0], "Apache-2.0", what, "pybuild", "")


def _faults(name: str, asked: PackageOptions) -> list[Problem]:
    found = []
    texts = {
        "--name": name, "--package-version": asked.version,
        "--description": asked.description, "--author": asked.author,
    }  # fmt: skip
    for where, text in texts.items():
        if len(text) > _MOST[where]:
            what = f"has {len(text)} characters; a package has {_MOST[where]} at most"
            found.append(Problem(where, what, "a shorter one"))
        elif not text.isprintable():
            found.append(Problem(where, f"{text!r} is not one line of text"))
    if name.lower() == RUNTIME or name.lower().startswith("arduino"):
        what = f"'{name}' is what the runtime or the IDE is called"
        found.append(Problem("--name", what, "another name"))
    if asked.author.lower().startswith("arduino"):
        what = f"{asked.author!r} begins with Arduino, which its own libraries may"
        found.append(Problem("--author", what, "another name first"))
    if name.startswith("_"):
        what = f"'{name}' does not begin with a letter, as a package does"
        found.append(Problem("--name", what, "another name"))
    if not _VERSION.fullmatch(asked.version):
        what = f"'{asked.version}' is not a version"
        found.append(Problem("--package-version", what, "like 1.0.0 or 1.0.0-rc.1"))
    if asked.licence and not _LICENCE.fullmatch(asked.licence):
        what = f"'{asked.licence}' is not a licence of SPDX"
        found.append(Problem("--licence", what, "like MIT or LicenseRef-Ours"))
    if asked.url and not _URL.fullmatch(asked.url):
        found.append(Problem("--url", f"'{asked.url}' is not a URL", "https://..."))
    return found
