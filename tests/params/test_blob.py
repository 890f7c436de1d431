"""TVM's parameter blob: bytes as in its format, hostile blobs refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.params.blob import read_blob, write_blob
from tests.near.examples import few

# written out from the format's table: b int8[2,2] and a float32[1], in this order
LIST_MAGIC = bytes.fromhex("b79c04054f8de5f7")
ARRAY_MAGIC = bytes.fromhex("3fa1b496f0405edd")
B = ARRAY_MAGIC + bytes(8) + struct.pack("<iii", 1, 0, 2) + bytes([0, 8, 1, 0])
B += struct.pack("<qqq", 2, 2, 4) + bytes([1, 2, 253, 4])
A = ARRAY_MAGIC + bytes(8) + struct.pack("<iii", 1, 0, 1) + bytes([2, 32, 1, 0])
A += struct.pack("<qqf", 1, 4, 1.5)
HEAD = LIST_MAGIC + bytes(8) + struct.pack("<q", 2)
BY_TVM = HEAD + struct.pack("<q1sq1s", 1, b"b", 1, b"a") + struct.pack("<q", 2) + B + A
SORTED = HEAD + struct.pack("<q1sq1s", 1, b"a", 1, b"b") + struct.pack("<q", 2) + A + B

KINDS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
KINDS += ["uint64", "float16", "float32", "float64"]
ARRAYS = st.dictionaries(
    st.text(max_size=20),
    st.sampled_from(KINDS).flatmap(
        lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, min_side=0))
    ),
    max_size=5,
)


def same(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_reads_what_tvm_writes() -> None:
    arrays = read_blob(BY_TVM)
    assert list(arrays) == ["b", "a"]
    assert same(arrays["b"], np.array([[1, 2], [-3, 4]], np.int8))
    assert same(arrays["a"], np.array([1.5], np.float32))


def test_writes_the_same_in_the_order_of_names() -> None:
    assert write_blob(read_blob(BY_TVM)) == SORTED
    assert write_blob({}) == LIST_MAGIC + bytes(24)


def test_ignores_what_is_reserved_and_the_device_number() -> None:
    data = bytearray(SORTED)
    data[8:16] = b"reserved"
    at = data.index(ARRAY_MAGIC)
    data[at + 8 : at + 16] = b"reserved"
    data[at + 20 : at + 24] = b"\5\0\0\0"
    assert same(read_blob(bytes(data))["a"], np.array([1.5], np.float32))


@given(ARRAYS)
def test_round_trip(arrays: dict[str, Array]) -> None:
    back = read_blob(write_blob(arrays))
    assert list(back) == sorted(arrays)
    assert all(same(back[name], value) for name, value in arrays.items())


def test_strides_and_byte_order_do_not_matter() -> None:
    value = np.arange(12, dtype=">i4").reshape(3, 4).T
    back = read_blob(write_blob({"w": value, "list": [1.0, 2.0]}))
    assert np.array_equal(back["w"], value) and back["w"].dtype == np.int32
    assert back["list"].dtype == np.float64


@pytest.mark.parametrize(
    ("at", "change", "what"),
    [
        (0, b"PK\3\4", "is not a parameter blob (its first bytes are others)"),
        (16, b"\3", "name 2 is not UTF-8"),
        (16, b"\xff" * 8, f"the number of names is {2**64 - 1}, more than the file"
         " can hold"),
        (24, b"\xff" * 8, f"ends in name 0: {2**64 - 1} bytes wanted, 130 left"),
        (32, b"\xff", "name 0 is not UTF-8"),
        (32, b"b", "two arrays are named 'b'"),
        (42, b"\1", "has 2 names but 1 arrays"),
        (50, b"\0", "array 'a' does not begin as an array does"),
        (66, b"\2", "array 'a' is of device type 2, not of a CPU (1)"),
        (74, b"\xff" * 4, "array 'a' has rank -1, not 0 to 32"),
        (74, b"\x21", "array 'a' has rank 33, not 0 to 32"),
        (78, b"\4\x10", "array 'a' is of type bfloat16, which is not supported"),
        (78, b"\7", "array 'a' is of type code 732, which is not supported"),
        (80, b"\4", "array 'a' is of type float32x4, which is not supported"),
        (82, b"\xff" * 8, "array 'a' has shape [-1]"),
        (82, b"\2", "array 'a' has 4 bytes for float32[2]"),
        (82, b"\0" * 7 + b"\1", "array 'a' has 4 bytes for float32[72057594037927936]"),
    ],
)  # fmt: skip
def test_damage_is_named(at: int, change: bytes, what: str) -> None:
    data = SORTED[:at] + change + SORTED[at + len(change) :]
    with pytest.raises(BuildError) as caught:
        read_blob(data, "w.params")
    assert str(caught.value) == f"w.params: {what}"


def test_every_cut_is_found() -> None:
    for length in range(len(SORTED)):
        with pytest.raises(BuildError):
            read_blob(SORTED[:length])
    with pytest.raises(BuildError, match="1 bytes follow the last array"):
        read_blob(SORTED + b"x")


def test_every_type_without_a_code_is_named() -> None:
    arrays = {"c": np.zeros(2, complex), "s": np.array(["text"]), "f": np.zeros(1)}
    with pytest.raises(BuildError) as caught:
        write_blob(arrays, "w.params")
    assert str(caught.value).splitlines() == [
        "w.params: 'c': the blob has no type complex128",
        "w.params: 's': the blob has no type <U4",
    ]


def _mutants(base: bytes) -> st.SearchStrategy[bytes]:
    """Copies with a few bytes changed, cut or doubled."""
    change = st.tuples(st.integers(0, len(base) - 1), st.binary(max_size=9))

    def apply(changes: list[tuple[int, bytes]], end: int) -> bytes:
        data = base
        for at, piece in changes:
            data = data[:at] + piece + data[at + len(piece) :]
        return data[:end]

    many = st.lists(change, min_size=1, max_size=4)
    return st.builds(apply, many, st.integers(len(base) // 2, len(base) * 2))


BASE = write_blob(
    {k: np.ones((2, 3), k) for k in KINDS}
    | {"none": np.zeros((0, 2)), "": np.zeros(())}
)


@settings(max_examples=few(500, 2000))
@given(st.one_of(_mutants(BASE), _mutants(SORTED), st.binary(max_size=99)))
def test_hostile_blobs_are_read_or_refused(data: bytes) -> None:
    try:
        arrays = read_blob(data)
    except BuildError:
        return
    assert sum(a.nbytes for a in arrays.values()) <= len(data)
