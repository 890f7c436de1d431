"""Parameter images: bytes, round trips, what is refused."""

from __future__ import annotations

import hashlib
import mmap
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.params.codecs import CODECS, LZ4, Codec, codec_name
from pybuild.params.image import Parameter
from pybuild.params.image_join import joined
from pybuild.params.image_read import read_image
from pybuild.params.image_write import plain, write_image
from tests.params.images import HALVES, arrays, sealed, seeds
from tests.params.test_blob import ARRAYS, same


def test_bytes_are_those_of_the_page() -> None:
    """One int8[3] named "w", written out from docs/formats.md."""
    content = hashlib.sha256(b"\1\2\3").digest()[:8]
    described = struct.pack("<HBB", 1, 2, 1) + b"w" + struct.pack("<iI", 3, 0) + content
    entry = struct.pack("<IHBBIIHHIII", 80, 1, 2, 1, 84, 0, 0, 0, 96, 3, 3) + content
    body = entry + b"w\0\0\0" + struct.pack("<i", 3) + bytes(8) + b"\1\2\3"
    rest = struct.pack("<HHIIIQ", 1, 16, 99, 1, 0, 5)
    rest += hashlib.sha256(described).digest()[:8] + body
    wanted = b"CRTP" + struct.pack("<I", zlib.crc32(rest)) + rest
    made = write_image(plain({"w": np.array([1, 2, 3], np.int8)}), plan=5)
    assert made == wanted


@pytest.mark.parametrize("codec", [None, CODECS[LZ4]])
@pytest.mark.parametrize("align", [4, 16, 4096])
def test_round_trip(codec: Codec | None, align: int) -> None:
    image = read_image(write_image(plain(arrays()), codec, align))
    assert [e.name for e in image.entries] == sorted(arrays(), key=str.encode)
    assert all(same(image.value(n), v) for n, v in arrays().items())
    assert all(e.at % align == 0 for e in image.entries)
    assert image.align == align and image.plan == 0
    assert sorted(p.name for p in image.parameters()) == sorted(arrays())


@given(ARRAYS)
def test_round_trip_of_any(given_arrays: dict[str, Array]) -> None:
    fits = {d.value for d in DType}
    kept = {
        n: v
        for n, v in given_arrays.items()
        if v.dtype.name in fits and n and "\0" not in n
    }
    image = read_image(write_image(plain(kept)))
    assert all(same(image.view(n), v) for n, v in kept.items())


def test_order_and_codec_do_not_change_what_it_is() -> None:
    once = read_image(write_image(plain(arrays())))
    backwards = dict(reversed(arrays().items()))
    assert write_image(plain(backwards)) == bytes(once.data)
    packed = read_image(write_image(plain(arrays()), CODECS[LZ4]))
    assert packed.content == once.content
    other = arrays() | {"b": arrays()["b"] + 1}
    assert read_image(write_image(plain(other))).content != once.content


def test_equal_payloads_are_stored_once() -> None:
    weights = np.arange(1000, dtype=np.int8)
    data = write_image(plain({"a": weights, "b": weights.reshape(10, 100)}))
    a, b = read_image(data).entries
    assert a.at == b.at and a.content == b.content and len(data) < 1200


def test_images_with_an_equal_payload_are_joined() -> None:
    big, small = np.arange(1000, dtype=np.int32), np.ones(3, np.int8)
    ones = np.ones(3, np.int16)

    def image(codec: Codec | None = None, align: int = 4, **values: Array) -> bytes:
        return write_image(plain(values), codec, align)

    a, b = image(w=big, b=small), image(align=8, v=big.reshape(10, 100))
    made = joined({"a": a, "b": b, "again": a})
    whole = read_image(made["a"])
    assert made["a"] == made["b"] == made["again"] and whole.align == 8
    assert [e.name for e in whole.entries] == ["b", "v", "w"]
    assert len(made["a"]) < len(a) + len(b) - big.nbytes
    assert same(whole.value("w"), big) and whole.value("v").shape == (10, 100)
    for other in (
        image(v=big + 1),  # nothing is equal
        image(w=big, b=small + 1),  # one name, two values
        image(w=big.reshape(10, 100)),  # and two shapes
        image(w=big, b=ones),  # and two types
        image(CODECS[LZ4], v=big, z=np.zeros(99, np.int8)),  # packed
    ):
        assert joined({"a": a, "b": other}) == {"a": a, "b": other}


def test_packed_only_where_it_saves() -> None:
    noise = np.frombuffer(np.random.default_rng(1).bytes(400), np.uint8)
    image = read_image(
        write_image(plain({"n": noise, "z": np.zeros(400, np.int8)}), CODECS[LZ4])
    )
    assert [codec_name(e.codec) for e in image.entries] == ["none", "lz4"]
    assert image.entry("z").stored < 20
    with pytest.raises(BuildError, match=r"'z': is packed. Hint: take value"):
        image.view("z")


def test_a_mapped_file_is_used_in_place(tmp_path: Path) -> None:
    path = tmp_path / "w.crtp"
    path.write_bytes(write_image(plain(arrays())))
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    image = read_image(memoryview(mapped))
    view = image.view("zeros")
    start = np.frombuffer(mapped, np.uint8).ctypes.data
    assert view.ctypes.data == start + image.entry("zeros").at
    assert not view.flags.writeable and view.flags.aligned


def test_layouts_and_codecs_of_a_plan() -> None:
    image = read_image(seeds()[2], "w.crtp")
    assert image.plan == 7 and image.entry("own").layout == 9
    with pytest.raises(BuildError) as caught:
        image.payload("own")
    assert str(caught.value) == (
        "w.crtp: parameter 'own': is packed by codec 32769, which is not known here."
        " Hint: give its function in `codecs`"
    )
    assert image.payload("own", {HALVES.number: HALVES}) == bytes(16)
    with pytest.raises(BuildError, match="is in layout 9 of plan 0000000000000007"):
        image.value("own", {HALVES.number: HALVES})
    with pytest.raises(BuildError, match=r"'b': unpacks to other bytes"):
        image.value("b", {HALVES.number: HALVES})
    with pytest.raises(BuildError, match=r"no parameter 'x'. Hint: it has b, conv/ü"):
        image.entry("x")


@pytest.mark.parametrize(
    ("parameter", "what"),
    [
        (Parameter("", DType.INT8, (1,), b"1"), "the name must be 1 to 65535 bytes"),
        (Parameter("a\0", DType.INT8, (1,), b"1"), "the name must be"),
        (Parameter("é" * 32768, DType.INT8, (1,), b"1"), "the name must be"),
        (Parameter("a", DType.INT8, (-1,), b""), "shape [-1] does not fit"),
        (Parameter("a", DType.INT8, (2**31, 0), b""), "does not fit"),
        (Parameter("a", DType.INT8, (1,) * 256, b"1"), "does not fit"),
        (Parameter("a", DType.INT16, (2,), b"1"), "1 bytes for int16[2]"),
        (Parameter("b", DType.INT8, (1,), b"1"), "is given twice"),
    ],
)
def test_what_the_format_cannot_hold(parameter: Parameter, what: str) -> None:
    good = Parameter("b", DType.INT8, (1,), b"1")
    with pytest.raises(BuildError) as caught:
        write_image([good, parameter], source="w.crtp")
    name = parameter.name.replace("\0", "\\x00")
    assert f"w.crtp: parameter '{name}': " in str(caught.value)
    assert what in str(caught.value)


@pytest.mark.parametrize("align", [0, 2, 3, 24, 65536])
def test_alignments_that_are_none(align: int) -> None:
    with pytest.raises(BuildError, match="a power of 2 from 4 to 32768"):
        write_image([], align=align)


def test_types_that_no_tensor_has() -> None:
    with pytest.raises(BuildError, match=r"'h': no tensor has the type complex64"):
        plain({"h": np.zeros(1, np.complex64)})


@pytest.mark.parametrize(
    ("at", "change", "what"),
    [
        (0, b"CRTX", "w: is not a parameter image"),
        (8, b"\2", "w: is a parameter image of version 2. Hint: this pybuild reads "
         "version 1"),
        (12, b"\xff\xff", "w: says it has 65535 bytes, 97 are here. Hint: the file was"
         " cut"),
        (10, b"\7", "w: has an impossible header"),
        (16, b"\2", "w: cannot hold 2 parameters"),
        (40, b"\x62", "w: parameter 0: has no name inside the image"),
        (80, b"\0", "w: parameter 0: has a name out of order"),
        (80, b"\xff", "w: parameter 0: has a name that is not UTF-8"),
        (46, b"\x63", "w: parameter 0: has an unknown type 99"),
        (47, b"\x63", "w: parameter 0: has no shape inside the image"),
        (87, b"\xff", "w: parameter 0: has shape [-16777215]"),
        (84, b"\2", "w: parameter 0: has 1 bytes for int8[2]"),
        (60, b"\4", "w: parameter 0: has no payload inside the image"),
        (64, b"\0", "w: parameter 0: has 0 bytes for 1"),
    ],
)  # fmt: skip
def test_damage_is_named(at: int, change: bytes, what: str) -> None:
    data = write_image(plain({"w": np.array([1], np.int8)}))
    data = sealed(data[:at] + change + data[at + len(change) :])
    with pytest.raises(BuildError) as caught:
        read_image(data, "w")
    assert str(caught.value) == what


def test_every_bit_counts() -> None:
    data = write_image(plain({"w": np.array([1], np.int8)}))
    for at in range(len(data)):
        with pytest.raises(BuildError):
            read_image(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        with pytest.raises(BuildError):
            read_image(data[:at])


def test_a_damaged_payload_is_named_even_with_a_true_checksum() -> None:
    data = bytearray(write_image(plain({"z": np.zeros(99, np.int8)}), CODECS[LZ4]))
    for at in range(read_image(bytes(data)).entry("z").at, len(data)):
        wrong = sealed(
            bytes(data[:at]) + bytes([data[at] ^ 64]) + bytes(data[at + 1 :])
        )
        with pytest.raises(BuildError, match=r"'z': (is damaged|unpacks to other)"):
            read_image(wrong).parameters()


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_noise_is_refused(data: bytes) -> None:
    with pytest.raises(BuildError):
        read_image(b"CRTP" + data)
