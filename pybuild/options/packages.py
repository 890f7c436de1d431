"""Options of packages for firmware projects; the table of options has them, too."""

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

_PACKAGE = "packages"


@dataclass(frozen=True)
class PackageOptions:
    """What a tree is as a package of firmware projects: ecosystems.packages."""

    package: tuple[str, ...] = option(
        (), kinds.listed(*ECOSYSTEMS, whole="all", more=(MLF,)), _PACKAGE,
        "write DIR/NAME and the runtime DIR/crt as packages of these, or all; mlf: "
        "DIR/NAME.tar, TVM's model library format",
    )  # fmt: skip
    archive: bool = option(
        False, kinds.FLAG, _PACKAGE,
        "write the files that these ecosystems install, not folders",
    )  # fmt: skip
    version: str = option(
        "1.0.0", kinds.text("VERSION"), _PACKAGE,
        "the package's version, like 1.0.0 or 1.0.0-rc.1; default 1.0.0",
        word="package-version",
    )  # fmt: skip
    licence: str = option(
        "", kinds.text("SPDX"), _PACKAGE,
        "the licence of the network's weights, like MIT; default: none is named",
    )  # fmt: skip
    description: str = option(
        "", kinds.text("TEXT"), _PACKAGE, "one line about the network"
    )
    author: str = option(
        "", kinds.text("NAME"), _PACKAGE, "who makes the package, like 'Ada <a@b.org>'"
    )
    url: str = option("", kinds.text("URL"), _PACKAGE, "where to read about it")
