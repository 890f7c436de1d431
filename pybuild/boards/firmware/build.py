"""Firmware of a built model for a board: compiled, linked, its bytes counted.

Knows compilers and the linker script; does not run anything on the board.
"""

from __future__ import annotations

import concurrent.futures
import os
import string
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pybuild.boards.firmware.elf import Elf, read_elf
from pybuild.boards.firmware.model_header import model_header
from pybuild.boards.firmware.stack import stack_chain
from pybuild.boards.firmware.too_large import overflows, too_large
from pybuild.bounds.stack import Chain
from pybuild.emit.content import Content, pieces
from pybuild.errors import BuildError, Lines
from pybuild.install import boards, called, crt_include, crt_sources, temporary_folder
from pybuild.records import dataclass
from pybuild.targets.board import Board
from pybuild.targets.chip import HARTS
from pybuild.targets.core import Core, linkable_with
from pybuild.targets.facts import Memory
from pybuild.targets.toolchain import Toolchain

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library

ROOM = 1 << 27  # bytes of each memory, before the stack's own need is known
_DATA = ("_weights.c", "_params.c")
_SHARED = ("runtime", "board")  # roles whose files are alike for all models
_OBJECTS: dict[tuple[str, ...], tuple[bytes, bytes]] = {}
_SECOND = "board_second_reset"
_VECTORS = 4096  # bytes of memory for a vector table that lies by itself
_ON_CORES = "run_on_cores"  # of the runner: the run on two equal cores
PUSHES = "push_row"  # of the runner: hands a row to the model
ENTRIES = {"arm": "board_reset", "riscv": "board_entry", "xtensa": "board_entry"}


@dataclass(frozen=True)
class Firmware:
    """A program for a board.

    core         whose instructions it is made of
    second       whether a second core takes part; second_bound: bytes of its stack
    equal        whether both compute slices of each call (docs/two-cores.md)
    stack_bound  bytes that the whole program needs at most
    run_chain    of calls of one inference, from the runner's frame on, the deepest
    folder       holds the file; gone when this is closed
    """

    board: Board
    core: Core
    toolchain: Toolchain
    name: str
    path: Path
    elf: Elf
    stack_bound: int
    run_chain: Chain
    folder: tempfile.TemporaryDirectory[str]
    second: bool = False
    second_bound: int = 0
    equal: bool = False

    @property
    def is_device(self) -> bool:
        """True if the second core is a device of the model."""
        return self.second and not self.equal


@dataclass(frozen=True)
class Group:
    """C files that are compiled alike: the objects are <role>_<file>.o.

    core  whose instructions; None: that of the program
    """

    role: str
    files: Mapping[str, str]
    flags: tuple[str, ...] = ()
    core: Core | None = None


def board_group(board: Board) -> Group:
    """Start-up, console, ticks, semihosting and the little C library."""
    common = boards() / "common"
    arch = board.core.arch
    own = "_xtensa" if arch == "xtensa" else ""
    files = [
        common / f"start_{arch}.c",
        common / f"ticks_{arch}.c",
        common / f"semihosting{own}.c",
        common / "libc" / "libc.c",
        *([common / "libgcc_xtensa.c"] if own else []),
        board.console,
    ]
    return Group("board", texts(files), board_flags(board))


def second_group(board: Board, equal: bool = False) -> Group:
    """The C files that start the board's second core.

    equal  as one that computes slices; else it is a device
    """
    names = ["second.c"] * (not equal)
    names += [f"second_{board.core.arch}.c", f"second_{board.chip}.c"]
    files = [boards() / "common" / name for name in names]
    return Group("board", texts(files), board_flags(board))


def board_flags(board: Board) -> tuple[str, ...]:
    common = boards() / "common"
    facts = (f"-DBOARD_UART=0x{board.uart_base:08X}u", f"-DBOARD_HZ={board.hz}u")
    return (*facts, f"-I{common}")


def texts(files: Sequence[Path]) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in files}


def linker_script(board: Board, core: Core, stack: int, second: int = 0) -> str:
    """The one template with the board's memories; `stack`: bytes it must have.

    second  bytes of the second core's stack
    """
    text = (boards() / "common" / "link.ld.in").read_text(encoding="utf-8")
    memories = dict(board.memories)
    if board.vectors is not None:
        memories["vectors"] = Memory(board.vectors, _VECTORS)
    return _At(text).substitute(
        board=board.name,
        entry=ENTRIES[core.arch],
        flash_origin=f"0x{board.flash.origin:08X}",
        flash_size=board.flash.size,
        ram_origin=f"0x{board.ram.origin:08X}",
        ram_size=board.ram.size,
        vectors="FLASH" if board.vectors is None else "VECTORS",
        stack=stack,
        second_stack=second,
        memories="".join(_memory_line(n, m) for n, m in memories.items()),
        regions="".join(map(_region_line, board.memories)),
    )


def _memory_line(name: str, memory: Memory) -> str:
    origin = f"ORIGIN = 0x{memory.origin:08X}, LENGTH = {memory.size}"
    return f"\n    {name.upper()} (rwx) : {origin}"


def _region_line(name: str) -> str:
    """Nothing there is cleared at the start."""
    return f"\n    .{name} (NOLOAD) : {{ *(.region_{name}) }} > {name.upper()}"


class _At(string.Template):
    delimiter = "@"


def runner_firmware(
    library: Library,
    board: Board,
    toolchain: Toolchain,
    core: Core | None = None,
    optimise: str = "balanced",
    record: bool = False,
) -> Firmware:
    """The program behind crt run, check and bench.

    core    another one than the board's, whose code the board's runs too
    record  writes the rows of every step
    Errors  BuildError with the compiler's words; LimitError where it does not fit
    """
    common = boards() / "common"
    made = library.sources() if library.processor is None else library.compiled()
    sources, headers, objects = sorted_files(made)
    headers["firmware_model.h"] = model_header(library, board.memories)
    runner: tuple[str, ...] = ("-DRECORD",) if record else ()
    # rows are recorded by the first core, which then does all
    second = board.second if library.tables.device_count > 1 and not record else None
    equal = library.tables.cores > 1 and not record
    runner += ("-DBOARD_SECOND",) if second else ()
    runner += ("-DBOARD_CORES",) if equal else ()
    runner += ("-DBOARD_HARTS",) if equal and board.chip == HARTS else ()
    groups = [
        *([second_group(board, equal)] if second or equal else []),
        *model_groups(sources, second=second),
        Group("runner", texts([common / "runner.c"]), (*runner, f"-I{common}")),
    ]
    return build(library, board, toolchain, core or board.core, optimise,
                  groups, headers, objects)  # fmt: skip


def sorted_files(
    made: Mapping[str, Content],
) -> tuple[dict[str, str], dict[str, str], dict[str, bytes]]:
    """C files, headers and objects."""
    return (
        {n: str(t) for n, t in made.items() if n.endswith(".c")},
        {n: str(t) for n, t in made.items() if n.endswith(".h")},
        {n: b"".join(pieces(t)) for n, t in made.items() if n.endswith(".o")},
    )


def example_firmware(
    library: Library,
    board: Board,
    toolchain: Toolchain,
    core: Core | None = None,
    optimise: str = "balanced",
) -> Firmware:
    """example/main.c of the generated tree, which prints its self-test."""
    tree = library.files()
    models, headers, objects = sorted_files(
        {n: t for n, t in tree.items() if "/" not in n}
    )
    flags = ("-DCRT_WITH_SELFTEST",)
    main = {"main.c": str(tree["example/main.c"])}
    groups = [*model_groups(models, flags), Group("main", main, flags)]
    return build(library, board, toolchain, core or board.core, optimise,
                  groups, headers, objects)  # fmt: skip


def model_groups(
    sources: Mapping[str, str],
    flags: tuple[str, ...] = (),
    second: Core | None = None,
) -> list[Group]:
    """second: runs the kernels of device 1."""
    parts: dict[str, dict[str, str]] = {"kernels": {}, "second": {}, "weights": {}}
    for name, text in sources.items():
        kind = "second" if second and name.endswith("_device_1.c") else "kernels"
        parts["weights" if name.endswith(_DATA) else kind][name] = text
    return [
        Group("kernels", parts["kernels"], flags),
        Group("kernels", parts["second"], flags, second),
        Group("weights", parts["weights"], flags),
    ]


def build(
    library: Library,
    board: Board,
    toolchain: Toolchain,
    core: Core,
    optimise: str,
    groups: Sequence[Group],
    headers: Mapping[str, str],
    made: Mapping[str, bytes],
) -> Firmware:
    """Compiles, links with the stack that it needs, and reads it again."""
    must_run(board, core)
    folder = temporary_folder()
    root = Path(folder.name)
    for name, text in headers.items():
        (root / name).write_bytes(text.encode())
    all_groups = [
        Group("runtime", texts(crt_sources())),
        board_group(board),
        *groups,
    ]
    builder = _Builder(library, board, toolchain, core, optimise, root)
    objects = builder.compile_all(all_groups)
    for file, data in made.items():
        objects.append(root / f"kernels_{file}")
        objects[-1].write_bytes(data)
    elf = read_elf(builder.link(objects, 0, room=ROOM))
    name = library.report.name
    runs = {f"{name}_run", *({PUSHES, _ON_CORES} & elf.by_name.keys())}
    runs -= {f"{name}_run"} if _ON_CORES in elf.by_name else set()

    def chain(entry: str) -> Chain:
        return stack_chain(elf, root, entry, runs, core.arch)

    whole, inner = chain(ENTRIES[core.arch]).bytes, chain("main")
    second = _SECOND in elf.by_name
    apart = -(-chain(_SECOND).bytes // 8) * 8 if second else 0
    path = builder.link(objects, whole, apart)
    return Firmware(
        board, core, toolchain, name, path, read_elf(path), whole, inner, folder,
        second, apart, second and _ON_CORES in elf.by_name,
    )  # fmt: skip


def must_run(board: Board, core: Core) -> None:
    """Checks that the board's core runs the code of `core`.

    Errors  BuildError where the board's core does not run the code of `core`.
    """
    known = (board.core.name, *board.core.runs)
    if core.name not in known:
        what = f"{board.name} has a {board.core.name}, which runs no {core.name} code"
        raise BuildError("--target", what, f"one of {', '.join(known)}")


class _Builder:
    """Builds with one compiler, for one core, in one folder."""

    def __init__(
        self,
        library: Library,
        board: Board,
        toolchain: Toolchain,
        core: Core,
        optimise: str,
        root: Path,
    ) -> None:
        self.library = library
        self.board = board
        self.toolchain = toolchain
        self.core = core
        self.level = toolchain.level(optimise)
        self.small = toolchain.small(optimise)
        self.root = root

    def compile_all(self, groups: Sequence[Group]) -> list[Path]:
        jobs = []
        for group in groups:
            for file, text in sorted(group.files.items()):
                path = self.root / f"{group.role}_{file}"
                path.write_bytes(text.encode())
                jobs.append((path, group))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda job: self._compile(*job), jobs))

    def _compile(self, path: Path, group: Group) -> Path:
        """The object; that of a file that knows no model is made once a process."""
        include = ["-isystem", str(boards() / "common" / "libc"), f"-I{crt_include()}"]
        core = linkable_with(group.core, self.core) if group.core else self.core
        level = self.level if group.role == "kernels" else self.small
        flags = (*self.toolchain.compile_flags(core), *level, *group.flags)
        made = path.with_suffix(".o")
        command = [*self.toolchain.command, *flags, *include, "-I.", "-fstack-usage"]
        command += ["-c", path.name, "-o", made.name]
        key = (*command, path.read_text(encoding="utf-8"))
        usage = path.with_suffix(".su")
        if group.role in _SHARED and key in _OBJECTS:
            for file, data in zip((made, usage), _OBJECTS[key], strict=True):
                file.write_bytes(data)
            return made
        self._run(command)
        if group.role in _SHARED:
            # zig writes no .su file
            said = usage.read_bytes() if usage.is_file() else b""
            _OBJECTS[key] = (made.read_bytes(), said)
        return made

    def link(
        self, objects: Sequence[Path], stack: int, second: int = 0, room: int = 0
    ) -> Path:
        """The program with at least `stack` bytes of stack.

        second  bytes of the second core's stack
        room    in each memory, whatever the board has; 0: what it has

        Errors  LimitError where flash or RAM is too small
        """
        board = self.board
        if room:
            flash, ram = (replace(m, size=room) for m in (board.flash, board.ram))
            board = replace(board, flash=flash, ram=ram)
        script = self.root / "link.ld"
        script.write_bytes(linker_script(board, self.core, stack, second).encode())
        path = self.root / "firmware.elf"
        flags = self.toolchain.link_flags(self.core, str(script))
        names = [made.name for made in objects]
        entry = f"-Wl,--entry={ENTRIES[self.core.arch]}"  # zig does not ask the script
        command = [*self.toolchain.command, *flags, entry, *names, "-o", path.name]
        self._run([*command, *self.toolchain.libraries(self.core)], stack)
        return path

    def _run(self, command: Sequence[str], stack: int = 0) -> None:
        done = called(command, self.root)
        if done.returncode != 0:
            over = overflows(done.stderr)
            if over:
                raise too_large(self.library, self.board, over, stack)
            what = f"cannot build for {self.board.name}: {done.stderr.strip()}"
            what = Lines(what)
            raise BuildError(str(self.toolchain), what)
