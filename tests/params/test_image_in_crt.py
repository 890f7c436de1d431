"""The same images in crt: accepted there where they are here."""

from __future__ import annotations

import ctypes
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybuild.errors import BuildError
from pybuild.install import host_library
from pybuild.params.image_read import read_image
from tests.near.examples import few
from tests.params.images import HALVES, arrays, sealed, seeds


class _Params(ctypes.Structure):
    _fields_ = (
        ("image", ctypes.c_void_p),
        ("unpacked", ctypes.c_void_p),
        ("count", ctypes.c_uint32),
        ("plan", ctypes.c_uint64),
        ("content", ctypes.c_uint64),
        ("users", ctypes.c_uint32),
    )


class _Param(ctypes.Structure):
    _fields_ = (
        ("content", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("dims", ctypes.POINTER(ctypes.c_int32)),
        ("data", ctypes.c_void_p),
        ("stored", ctypes.c_uint32),
        ("bytes", ctypes.c_uint32),
        ("layout", ctypes.c_uint32),
        ("codec", ctypes.c_uint16),
        ("dtype", ctypes.c_uint8),
        ("rank", ctypes.c_uint8),
    )


@functools.cache
def crt() -> ctypes.CDLL:
    return ctypes.CDLL(str(host_library()))


class Opened:
    """An image at an aligned place, as crt sees it."""

    def __init__(self, data: bytes) -> None:
        self.room = np.zeros(len(data) + 4096, np.uint8)
        start = -self.room.ctypes.data % 4096
        self.room[start : start + len(data)] = np.frombuffer(data, np.uint8)
        self.params = _Params()
        self.error = crt().crt_params_verify(
            ctypes.byref(self.params),
            ctypes.c_void_p(self.room.ctypes.data + start),
            ctypes.c_size_t(len(data)),
        )

    def param(self, name: str) -> _Param:
        index = crt().crt_params_find(ctypes.byref(self.params), name.encode())
        assert index >= 0
        found = _Param()
        assert not crt().crt_params_get(
            ctypes.byref(self.params), index, ctypes.byref(found)
        )
        assert found.name == name.encode()
        return found


@pytest.mark.parametrize("number", [0, 1, 2])
def test_crt_reads_what_python_writes(number: int) -> None:
    data = seeds()[number]
    image, opened = read_image(data), Opened(data)
    assert opened.error == 0
    facts = (opened.params.count, opened.params.plan, opened.params.content)
    assert facts == (len(image.entries), image.plan, image.content)
    for entry in image.entries:
        param = opened.param(entry.name)
        facts = (param.layout, param.codec, param.stored, param.bytes, param.content)
        assert facts == (
            entry.layout, entry.codec, entry.stored, entry.bytes, entry.content,
        )  # fmt: skip
        assert tuple(param.dims[i] for i in range(param.rank)) == entry.shape
        stored = ctypes.string_at(param.data, param.stored)
        assert stored == data[entry.at : entry.at + entry.stored]


def test_crt_unpacks_what_python_packs() -> None:
    opened = Opened(seeds()[1])
    for name, value in arrays().items():
        param = opened.param(name)
        to = ctypes.create_string_buffer(param.bytes + 1)
        size = param.bytes
        assert crt().crt_params_unpack(ctypes.byref(param), to, size, None, None) == 0
        assert to.raw[:-1] == value.tobytes()
    own = Opened(seeds()[2]).param("own")
    to = ctypes.create_string_buffer(own.bytes)
    assert own.codec == HALVES.number
    assert crt().crt_params_unpack(ctypes.byref(own), to, own.bytes, None, None) == -24


def _changed(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for near, at, piece in changes:
        at %= min(near, len(data))
        data = data[:at] + piece + data[at + len(piece) :]
    return data


SMALL = st.integers(0, 300).map(lambda n: n.to_bytes(4, "little"))
PIECES = st.one_of(st.binary(min_size=1, max_size=4), SMALL)
CHANGES = st.tuples(st.sampled_from([40, 300, 10**6]), st.integers(0, 10**6), PIECES)


@settings(max_examples=few(600, 3000))
@given(st.sampled_from(seeds()), st.lists(CHANGES, max_size=3), st.booleans())
def test_python_and_crt_refuse_the_same(
    seed: bytes, changes: list[tuple[int, int, bytes]], seal: bool
) -> None:
    data = _changed(seed, changes)
    data = sealed(data) if seal else data
    error = Opened(data).error
    try:
        read_image(data)
    except BuildError as refused:
        # crt hands names on as bytes
        assert error < 0 or "not UTF-8" in str(refused)
    else:
        assert error == 0
