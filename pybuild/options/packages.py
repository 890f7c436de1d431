"""Options of packages for firmware projects."""

from __future__ import annotations

from pybuild.options import kinds
from pybuild.options.option import option
from pybuild.records import dataclass

# firmware projects that take a package, in the order of docs/ecosystems.md
ECOSYSTEMS = (
    "arduino", "platformio", "esp-idf", "zephyr", "cmsis-pack", "cmake", "meson", "make"
)  # fmt: skip

# what is one file: TVM's model library format, an archive for its tools
MLF = "mlf"

# wake words as an external component of ESPHome
ESPHOME = "esphome"

# a crate: not of every build, so that "all" is without it
RUST = "rust"

_PACKAGE = "packages"


@dataclass(frozen=True)
class PackageOptions:
    """Options of a tree that is written as packages: ecosystems.packages."""

    package: tuple[str, ...] = option(
        (), kinds.listed(*ECOSYSTEMS, whole="all", more=(MLF, ESPHOME, RUST)), _PACKAGE,
        "write DIR/NAME and the runtime DIR/crt as packages for these, or all; mlf: "
        "DIR/NAME.tar, TVM's model library format; esphome: wake words as a component; "
        "rust: a crate without std",
    )  # fmt: skip
    archive: bool = option(
        False, kinds.FLAG, _PACKAGE,
        "write archives as these ecosystems install them, not folders",
    )  # fmt: skip
    version: str = option(
        "1.0.0", kinds.text("VERSION"), _PACKAGE,
        "the package's version, like 1.0.0 or 1.0.0-rc.1; default 1.0.0",
        word="package-version",
    )  # fmt: skip
    licence: str = option(
        "", kinds.text("SPDX"), _PACKAGE,
        "the licence of the network's weights, like MIT; default: none",
    )  # fmt: skip
    description: str = option(
        "", kinds.text("TEXT"), _PACKAGE, "one line that describes the network"
    )
    author: str = option(
        "", kinds.text("NAME"), _PACKAGE, "the package's author, like 'Ada <a@b.org>'"
    )
    url: str = option("", kinds.text("URL"), _PACKAGE, "the web page of the package")
