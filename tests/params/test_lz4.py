"""LZ4 blocks: what is packed comes back, damaged blocks are refused, as in C."""

from __future__ import annotations

import ctypes
import functools
import importlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pybuild.install import host_library
from pybuild.params.lz4 import Lz4Error, pack, unpack
from tests.near.examples import few
from tests.toolchains import require_module

REPEATING = st.lists(
    st.tuples(st.binary(min_size=1, max_size=12), st.integers(1, 60)), max_size=12
).map(lambda parts: b"".join(piece * times for piece, times in parts))
DATA = st.one_of(st.binary(max_size=600), REPEATING)


@functools.cache
def _crt() -> ctypes.CDLL:
    return ctypes.CDLL(str(host_library()))


def unpack_in_c(block: bytes, size: int) -> bytes | None:
    to = ctypes.create_string_buffer(size + 1)
    error = _crt().crt_lz4_unpack(block, len(block), to, size)
    assert error in (0, -25) and to.raw[size] == 0
    return to.raw[:size] if error == 0 else None


@settings(max_examples=300)
@given(DATA)
def test_round_trip(data: bytes) -> None:
    block = pack(data)
    assert unpack(block, len(data)) == data == unpack_in_c(block, len(data))
    assert len(block) <= len(data) + len(data) // 255 + 16


@settings(max_examples=100)
@given(DATA)
def test_the_reference_reads_it(data: bytes) -> None:
    require_module("lz4")
    block = importlib.import_module("lz4.block")
    assert block.decompress(pack(data), uncompressed_size=len(data)) == data
    assert unpack(block.compress(data, store_size=False), len(data)) == data


def test_known_blocks() -> None:
    """Written out from the format's description."""
    assert unpack(bytes.fromhex("1f61010008506263646566"), 33) == b"a" * 28 + b"bcdef"
    assert pack(b"") == b"\0"
    assert pack(b"abc") == b"\x30abc"
    assert pack(b"a" * 28 + b"bcdef") == bytes.fromhex("1f61010008506263646566")


def test_last_bytes_are_literals() -> None:
    """The format: no match in the last 5 bytes, none starts in the last 12."""
    assert pack(b"a" * 12) == b"\xc0" + b"a" * 12
    assert pack(b"a" * 13) == b"\x13a\1\0\x50aaaaa"


def test_far_matches_are_not_used() -> None:
    middle = np.random.default_rng(0).bytes(65535)
    for gap in (65535 - 16, 65535 - 15):
        data = b"0123456789abcdef" + middle[:gap] + b"0123456789abcdef" + b"." * 12
        assert unpack_in_c(pack(data), len(data)) == data


@settings(max_examples=few(400, 1500))
@given(DATA, st.data())
def test_damaged_blocks_are_refused_as_in_c(data: bytes, draw: st.DataObject) -> None:
    block = bytearray(pack(data))
    for _ in range(draw.draw(st.integers(0, 3))):
        at = draw.draw(st.integers(0, len(block) - 1))
        block[at] = draw.draw(st.sampled_from([0, 1, 15, 16, 240, 255, 254, 80]))
    cut = bytes(block[: draw.draw(st.integers(0, len(block)))])
    for given_block in (bytes(block), cut):
        size = draw.draw(st.integers(0, len(data) + 4))
        try:
            here: bytes | None = unpack(given_block, size)
        except Lz4Error:
            here = None
        assert here == unpack_in_c(given_block, size)
