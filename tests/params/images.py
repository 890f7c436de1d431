"""Parameter images for tests: a few tensors in every codec and layout."""

from __future__ import annotations

import zlib

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.params.codecs import CODECS, LZ4, Codec
from pybuild.params.image import Parameter
from pybuild.params.image_write import plain, write_image

HALVES = Codec(
    0x8001, "halves", lambda data: data[::2], lambda data, size: (data * 2)[:size]
)


def arrays() -> dict[str, Array]:
    chance = np.random.default_rng(0)
    return {
        "b": chance.integers(-3, 3, (5, 7)).astype(np.int8),
        "zeros": np.zeros((3, 100), np.float32),
        "conv/ü:0": chance.integers(-2, 2, (3, 3, 50)).astype(np.int16),
        "scalar": np.array(-7, np.int64),
        "none": np.zeros((0, 3), np.float32),
        "flags": np.array([True, False]),
    }


def seeds() -> list[bytes]:
    """Images to mutate: as they are, LZ4, and a codec and layouts of someone's own."""
    own = Parameter("own", DType.INT8, (3, 3), bytes(16), layout=9)
    return [
        write_image(plain(arrays())),
        write_image(plain(arrays()), CODECS[LZ4], 4),
        write_image([*plain(arrays()), own], HALVES, 64, plan=7),
    ]


def sealed(image: bytes) -> bytes:
    """The image with the checksum that its bytes have."""
    total = int.from_bytes(image[12:16], "little")
    crc = zlib.crc32(image[8:total])
    return image[:4] + crc.to_bytes(4, "little") + image[8:]
