"""The common base of libraries and images: both can be written as packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from pybuild.emit.c.image import ImageTables
from pybuild.emit.content import Content
from pybuild.emit.tables.tables import Tables
from pybuild.errors import BuildError, fitting
from pybuild.options.option import read_options
from pybuild.options.packages import ECOSYSTEMS, PackageOptions
from pybuild.options.table import BuildOptions

if TYPE_CHECKING:
    from pybuild.ecosystems.packages import Made


class Reported(Protocol):
    """A report of a build."""

    def to_json(self) -> dict[str, Any]: ...


class Packaged:
    """A build of one model or several."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...

        @property
        def report(self) -> Reported: ...

        def generated(self) -> Mapping[str, Content]: ...

        @property
        def tables(self) -> Tables | ImageTables: ...

        @property
        def options(self) -> BuildOptions: ...

        def program(self) -> tuple[Mapping[str, str], Sequence[Tables]]:
            """The values for the templates of an example, and its models."""

    def mlf(self) -> bytes:
        """TVM's model library format of it; without --api it is built again with that.

        Errors  BuildError for several models
        """
        from pybuild.ecosystems.mlf import Whole, mlf_archive

        if self.program()[1][0].name != self.name:
            what = "is of one model"
            raise BuildError("--package mlf", what, "build each by itself")
        made = cast(Whole, self)
        return mlf_archive(made if made.options.api else made.again(api="tvm"))

    def for_packages(self) -> Made:
        """The contents from which packages of this build are made."""
        from pybuild.ecosystems.packages import Made

        values, models = self.program()
        whole = {"name": self.name, **values}
        facts, is_image = self.report.to_json(), models[0].name != self.name
        own = self.generated(), whole, models, facts, is_image
        image = self.tables if isinstance(self.tables, ImageTables) else None
        target = self.options.target
        return Made(self.name, *own, self.mlf, target=target, image=image)

    def write_packages(
        self, out: str | Path, force: bool = False, **asked: Any
    ) -> None:
        """Writes OUT/NAME and OUT/crt, packages of firmware projects, or archives.

        force   over files of other builds
        asked   package="all" or names, archive, version, licence, description,
                author, url
        Errors  BuildError, before anything is written
        """
        from pybuild.ecosystems.write import prepared

        options = read_options(PackageOptions, asked)
        if not options.package:
            raise BuildError("package", "is missing", fitting("", (*ECOSYSTEMS, "all")))
        prepared(Path(out), self.for_packages(), options, force).write()
