"""What the headers promise of time, in instructions of an emulated Cortex-M4."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from pybuild.params.codecs import codec_called
from pybuild.params.image_write import plain, write_image
from tests.boards.programs import chain, compiler
from tests.objects.images import CORES, HERE
from tests.toolchains import INCLUDE, ROOT, SOURCES, STRICT, require_module, run

if TYPE_CHECKING:
    from tests.objects.simulated import Machine


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    require_module("unicorn")
    from tests.objects.simulated import Machine

    image = tmp_path_factory.mktemp("times") / "times.elf"
    m4 = CORES["cortex-m4"]
    tools = chain(m4, "gcc")
    program = ROOT / "tests" / "evidence" / "times.c"
    run([*compiler(m4), *STRICT, "-Os", "-DCRT_NO_STRING_H", f"-I{INCLUDE}",
         *SOURCES, HERE / "runner.c", program,
         *tools.link_flags(m4, str(HERE / "image.ld")), *tools.libraries(m4),
         "-o", image])  # fmt: skip
    return Machine("cortex-m4", image)


def given(core: Machine, count: int, codec: str = "none", size: int = 4) -> int:
    """An image of so many parameters lies in the core's memory; its bytes."""
    rng = np.random.default_rng(count)
    arrays = {
        f"p{index:04d}": rng.integers(0, 4, size).repeat(8).astype(np.int8)
        for index in range(count)
    }
    data = write_image(plain(arrays), codec_called(codec) if codec != "none" else None)
    core.uc.mem_write(core.symbols["image"], data)
    return len(data)


# @req crt_crc32:Time
def test_a_checksum_looks_a_table_of_64_bytes_up_twice_a_byte(core: Machine) -> None:
    few, many = core.counted("time_checksum", 1000), core.counted("time_checksum", 3000)
    each = (many - few) / 2000
    # a byte, its sum, two look-ups of three to five instructions, the loop
    assert each == int(each) and 10 <= each <= 16
    assert "static const uint32_t table[16]" in (ROOT / "crt/src/crc.c").read_text()


# @req crt_params_verify:Time
def test_an_image_is_verified_by_a_checksum_and_two_hundred_a_parameter(
    core: Machine,
) -> None:
    rest = {}
    for count in (10, 110):
        size = given(core, count)
        assert core.call("time_verify", size) == 0
        rest[count] = core.counted("time_verify", size) - core.counted(
            "time_checksum", size - 8
        )
    assert 150 < (rest[110] - rest[10]) / 100 < 250


# @req crt_params_find:Time
def test_a_name_is_found_by_halving(core: Machine) -> None:
    most = {}
    for count in (8, 64, 512):
        assert core.call("time_verify", given(core, count)) == 0
        taken = []
        for index in range(0, count, max(1, count // 16)):
            core.uc.mem_write(core.symbols["name"], f"p{index:04d}\0".encode())
            assert core.call("time_find") == index
            taken.append(core.counted("time_find"))
        most[count] = max(taken)
    # three more halvings each time, not eight times as many looks
    assert most[64] < 2.2 * most[8] and most[512] - most[64] < 1.5 * most[8]


# @req crt_timing_summary_of:Time
def test_a_summary_takes_the_square_of_its_laps(core: Machine) -> None:
    one = core.counted("time_summary", 1)
    taken = {n: core.counted("time_summary", n) - one for n in (16, 32, 64)}
    assert core.call("time_summary", 64) == 0
    assert taken[32] < 4.2 * taken[16] and taken[64] < 4.2 * taken[32]


# @req crt_params_unpack:Time
def test_unpacking_is_copying_and_thirty_instructions_a_match(core: Machine) -> None:
    found = []
    for codec in ("none", "lz4"):
        assert core.call("time_verify", given(core, 1, codec, 1500)) == 0
        assert core.call("time_get", 0) == 0 and core.call("time_unpack") == 0
        held = bytes(core.uc.mem_read(core.symbols["unpacked"], 12000))
        found.append((core.counted("time_unpack"), held))
    (copied, plainly), (unpacked, other) = found
    assert plainly == other
    # runs of 8 equal bytes: a match each, less where two runs are equal
    assert unpacked - copied < 40 * 1500 + 12000
