"""Pictures of a camera: colours and sizes beside exact and foreign ones, the same bits
compiled, whole and line by line; normalisation in weights or in a table.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.entry import model_of
from pybuild.errors import BuildError
from pybuild.features import Images, images
from pybuild.model import Model
from pybuild.ops.sensors.image import FORMATS
from tests.toolchains import require_module

HEIGHT, WIDTH = 24, 32
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZES: tuple[dict[str, Any], ...] = (
    {"size": (12, 8), "resize": "box"},
    {"size": (8, 10), "crop": (4, 6, 16, 20), "colours": 1},
    {"size": (8, 4), "crop": (2, 2, 20, 24), "resize": "box", "ones": True},
    {"size": (6, 4), "mean": MEAN, "std": STD},
)


def frames(format: str, count: int = 3, seed: int = 0) -> Array:
    shape = (count, HEIGHT, WIDTH, FORMATS[format].bytes)
    made = np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)
    made[0] = 255
    return made


@pytest.mark.parametrize("format", FORMATS)
def test_bits_of_every_format_line_by_line(format: str) -> None:
    given = frames(format)
    for options in SIZES:
        camera = images(format, WIDTH, HEIGHT, **options)
        net = pybuild.build(camera, push="lines").host()
        for frame, picture in zip(given, camera(given), strict=True):
            for line in frame:
                net.push_rows("lines", line[None])
            np.testing.assert_array_equal(net.get_output("image")[0], picture)


def told(camera: Images, colours: Array) -> Array:
    """What a camera gives, 0 to 255, for the same colour everywhere."""
    flat = np.broadcast_to(colours, (HEIGHT, WIDTH, len(colours))).astype(np.uint8)
    return np.asarray(camera(flat)[0, 0], np.int64) + 128


def test_colours_of_yuv_are_those_of_the_standard() -> None:
    """ITU-R BT.601 in real numbers, within a step."""
    rng = np.random.default_rng(3)
    for name, low, high in (("yuyv", 0, 255), ("yuyv_video", 16, 235)):
        camera = images(name, WIDTH, HEIGHT, (4, 4))
        chroma = 255 if low == 0 else 224
        for y, u, v in rng.integers(0, 256, (200, 3)):
            pair = np.resize([y, u, y, v], (HEIGHT, WIDTH, 2)).astype(np.uint8)
            light = (y - low) / (high - low)
            cb, cr = (u - 128) / chroma, (v - 128) / chroma
            red, blue = light + 1.402 * cr, light + 1.772 * cb
            green = (light - 0.299 * red - 0.114 * blue) / 0.587
            real = np.clip(np.array([red, green, blue]), 0, 1) * 255
            found = camera(pair)[0, 0].astype(np.int64) + 128
            assert np.abs(found - real).max() < 1.6, (name, y, u, v)


def test_colours_of_rgb565_are_the_nearest() -> None:
    camera = images("rgb565", WIDTH, HEIGHT, (24, 32))
    numbers = np.resize(np.arange(1 << 16, dtype="<u2"), 86 * 24 * 32)
    every = numbers.view(np.uint8).reshape(-1, 24, 32, 2)
    codes = every.copy().view("<u2")[..., 0].astype(np.int64)
    parts = [(codes >> 11, 31), (codes >> 5 & 63, 63), (codes & 31, 31)]
    real = np.stack([part * 255 / most for part, most in parts], -1)
    found = camera(every).astype(np.int64) + 128
    assert np.abs(found - real).max() <= 0.5 + 1e-3
    swapped = images("rgb565_swapped", WIDTH, HEIGHT, (24, 32))
    np.testing.assert_array_equal(swapped(every[..., ::-1]), camera(every))


def test_cells_of_bayer_are_pixels() -> None:
    """Red, the mean of both greens, blue."""
    for name, cell in (
        ("bayer_rggb", (200, 50, 81, 9)), ("bayer_bggr", (9, 50, 81, 200)),
        ("bayer_grbg", (50, 200, 9, 81)), ("bayer_gbrg", (50, 9, 200, 81)),
    ):  # fmt: skip
        frame = np.tile(np.array(cell, np.uint8).reshape(2, 2), (12, 16))
        found = images(name, WIDTH, HEIGHT, (12, 16))(frame)
        assert (found.astype(int) + 128 == (200, 66, 9)).all()


def test_a_pixel_of_bayer_each() -> None:
    """Its own green where it has one, the mean where it has none; its cell's others."""
    given = frames("bayer_rggb")
    for order in ("rggb", "bggr", "grbg", "gbrg"):
        camera = images(f"bayer_{order}_full", WIDTH, HEIGHT, (HEIGHT, WIDTH))
        found = camera(given).astype(int) + 128
        for y, x in np.ndindex(HEIGHT, WIDTH):
            cell = given[:, y & -2 :, x & -2 :, 0][:, :2, :2].reshape(-1, 4).astype(int)
            green = cell[:, [n for n in range(4) if order[n] == "g"]].mean(1)
            if order[(y & 1) * 2 + (x & 1)] == "g":
                green = given[:, y, x, 0].astype(float)
            real = np.stack([cell[:, order.find("r")], green, cell[:, order.find("b")]])
            assert np.abs(found[:, y, x] - real.T).max() <= 0.5, (order, y, x)


@pytest.mark.parametrize("format", ["rgb888", "rgb565", "bayer_rggb"])
@pytest.mark.parametrize("size", [(12, 8), (8, 12), (9, 8), (6, 16)])
def test_boxes_are_means(format: str, size: tuple[int, int]) -> None:
    """Of exact areas; half a step, and what weights of 2^-11 round."""
    given = frames(format)
    camera = images(format, WIDTH, HEIGHT, size, resize="box")
    side = FORMATS[format].side
    full = images(format, WIDTH, HEIGHT, (HEIGHT // side, WIDTH // side))
    pixels = full(given).astype(np.float64) + 128
    made = _areas(_areas(pixels, size[0], 1), size[1], 2)
    apart = np.abs(camera(given) + 128.0 - made)
    assert apart.max() < (0.7 if format == "rgb888" else 1.1)


def _areas(x: Array, size: int, axis: int) -> Array:
    given = x.shape[axis]
    fine = np.repeat(x, size, axis)  # as many of each as there will be numbers
    shape = (*x.shape[:axis], size, given, *x.shape[axis + 1 :])
    return np.asarray(fine.reshape(shape).mean(axis + 1))


@pytest.mark.parametrize("size", [(12, 16), (9, 8), (36, 40)])
def test_between_pixels_as_onnx_runtime(size: tuple[int, int]) -> None:
    """Resize, linear, half_pixel: in float32 there."""
    require_module("onnxruntime")
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    ends = [("x", (1, 3, HEIGHT, WIDTH)), ("y", (1, 3, *size))]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in ends]
    sizes = numpy_helper.from_array(np.array(ends[1][1], np.int64), "sizes")
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")
    graph = helper.make_graph([node], "resize", values[:1], values[1:], [sizes])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    theirs = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    given = frames("rgb888")
    found = images("rgb888", WIDTH, HEIGHT, size)(given).astype(np.float64) + 128
    for frame, made in zip(given, found, strict=True):
        x = frame.astype(np.float32).transpose(2, 0, 1)[None]
        wanted: Any = theirs.run(None, {"x": x})[0]
        assert np.abs(made - wanted[0].transpose(1, 2, 0)).max() < 0.6


# ---- in front of a net ---------------------------------------------------------------


@cache
def net(pads: int, kind: str = "float32") -> Model:
    """A convolution of 3x3, and scores."""
    rng = np.random.default_rng(pads)
    b = pybuild.GraphBuilder("net")
    quant = {"float32": None, "int8": (0.02, -6), "uint8": (1 / 255, 0)}[kind]
    x = b.input("x", (1, 16, 16, 3), kind, quant)
    if kind == "uint8":
        x = b.op("quantize", x, dtype="int8", quant=(1 / 255, -128))
    if kind == "float32":
        w: Array = rng.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32)
        weights, bias = b.constant("w", w), b.constant("b", w[:, 0, 0, 0])
        more: dict[str, Any] = {}
    else:
        w = rng.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8)
        weights, bias = b.constant("w", w, (0.01, 0)), None
        more = {"dtype": "int8", "quant": (0.05, 0)}
    y = b.op("conv2d", x, weights, bias, pads=(pads,) * 4, strides=(2, 2), **more)
    b.output(b.op("mean", y, axes=(1, 2), keepdims=False, **more), "scores")
    return model_of(b.build())


CAMERA: dict[str, Any] = {"size": (16, 16), "crop": (4, 8, 16, 16)}


@pytest.mark.parametrize("pads", [0, 1])
def test_normalisation_is_in_the_weights(pads: int) -> None:
    """At the edges, too, where padding is 0 after normalisation."""
    camera = images(
        "rgb565", WIDTH, HEIGHT, ones=bool(pads), mean=MEAN, std=STD, **CAMERA
    )
    model, given = net(pads), frames("rgb565")
    moved = pybuild.normalised(model, MEAN, STD)
    assert moved.graph.tensor("x").shape == (1, 16, 16, 3 + pads)
    alone, folded, chain = (
        pybuild.build(m).host() for m in (model, moved, pybuild.chain(camera, model))
    )
    twin = pybuild.chain(camera, model)(given)
    assert len(moved.graph.nodes) == len(model.graph.nodes)
    for i, picture in enumerate(camera(given)):
        alone.run(x=camera.real(given)[i : i + 1, ..., :3])
        folded.run(x=(picture.astype(np.float32)[None] + 128) / 255)
        chain.run(lines=given[i][None])
        wanted = alone.get_output("scores")
        for found in (folded, chain):
            np.testing.assert_allclose(
                found.get_output("scores"), wanted, rtol=1e-4, atol=1e-5
            )
        np.testing.assert_allclose(twin["scores"][i], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_a_net_of_integers_gets_its_own(kind: str) -> None:
    """Those of (colour - mean) / std, by a table; the colours themselves need none."""
    plain = kind == "uint8"
    options = {} if plain else {"mean": MEAN, "std": STD}
    camera = images("yuyv", WIDTH, HEIGHT, **CAMERA, **options)
    given, model = frames("yuyv"), net(1, kind)
    chain = pybuild.chain(camera, model)
    assert ("colours" in chain.graph.constants) == (not plain)
    built = pybuild.build(chain, push="lines").host()
    alone, twin = pybuild.build(model).host(), chain(given)
    scale, zero = (1 / 255, 0) if plain else (0.02, -6)
    low, high = (0, 255) if plain else (-128, 127)
    for i, real in enumerate(camera.real(given)):
        q = np.clip(np.rint(real.astype(np.float64) / scale) + zero, low, high)
        alone.run(x=q[None].astype(kind))
        built.push_rows("lines", given[i].reshape(HEIGHT, -1))
        for found in (built.get_output("scores"), twin["scores"][i]):
            np.testing.assert_array_equal(found, alone.get_output("scores"))


def test_colours_first() -> None:
    """A net as exporters of PyTorch write it, and a decision behind it."""
    b = pybuild.GraphBuilder("first")
    x = b.input("x", (1, 3, 16, 16), "int8", (1 / 255, -128))
    flat = b.op("reshape", x, shape=(1, 768))
    w = np.random.default_rng(1).integers(-99, 99, (3, 768)).astype(np.int8)
    weights = b.constant("w", w, (0.002, 0))
    b.output(b.op("dense", flat, weights, dtype="int8", quant=(0.1, 0)), "scores")
    camera, given = images("rgb888", WIDTH, HEIGHT, **CAMERA), frames("rgb888")
    decision = pybuild.features.Decision(smooth=2, threshold=0.1, release=-1.0)
    chain = pybuild.chain(camera, b.build(), decision)
    built, alone = pybuild.build(chain).host(), pybuild.build(b.build()).host()
    twin = chain(given)
    for i, picture in enumerate(camera(given)):
        alone.run(x=np.ascontiguousarray(picture.transpose(2, 0, 1))[None])
        built.run(lines=given[i][None])
        for name in twin:
            np.testing.assert_array_equal(built.get_output(name), twin[name][i])
        np.testing.assert_array_equal(twin["scores"][i], alone.get_output("scores"))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"format": "rgb656"}, r"'rgb656' does not exist.*did you mean 'rgb"),
        ({"crop": (0, 0, 25, 4)}, r"the part \(0, 0, 25, 4\) of \[24, 32\] pixels"),
        ({"resize": "cubic"}, "resize 'cubic' does not exist"),
        ({"format": "yuyv", "crop": (0, 1, 4, 4)}, "1 pixels of yuyv"),
        ({"size": (0, 4)}, "sizes from 1"),
        ({"std": 0.0}, "std above 0"),
        ({"mean": (0.1, 0.2)}, r"\(0.1, 0.2\) of 3 colours"),
        ({"colours": 1, "ones": True}, "1 or 3 colours"),
        ({"size": (1, 1), "width": 4000, "height": 4000, "resize": "box"},
         "a pixel of 16000000, more than 4096"),
    ],
)  # fmt: skip
def test_what_makes_no_picture_is_told(options: dict[str, Any], what: str) -> None:
    given = {"format": "rgb565", "width": WIDTH, "height": HEIGHT, "size": (4, 4)}
    with pytest.raises(BuildError, match=what):
        images(**{**given, **options})


def test_what_does_not_fit_a_net_is_told() -> None:
    camera = images("rgb565", WIDTH, HEIGHT, (16, 12))
    with pytest.raises(BuildError, match=r"\[1, 16, 16, 3\], pictures are \[1, 16, 12"):
        pybuild.chain(camera, net(0))
    with pytest.raises(
        BuildError, match="every and stream apply only to models fed with samples"
    ):
        pybuild.chain(images("rgb565", WIDTH, HEIGHT, **CAMERA), net(0), every=2)
    normal = images("rgb565", WIDTH, HEIGHT, mean=MEAN, std=STD, **CAMERA)
    with pytest.raises(BuildError, match=r"images\(..., ones=True\)"):
        pybuild.chain(normal, net(1))
    with pytest.raises(
        BuildError, match=r"mean \(0.5,\) and std \(1.0,\) of 3 colours"
    ):
        pybuild.normalised(net(0), (0.5,), (1.0,))
    with pytest.raises(BuildError, match="has not one input of float32"):
        pybuild.normalised(net(0, "int8"), MEAN, STD)
    with pytest.raises(BuildError, match=r"frames are float64\[3\]"):
        camera(np.zeros(3))
    chain = pybuild.chain(images("rgb565", WIDTH, HEIGHT, **CAMERA), net(0))
    with pytest.raises(BuildError, match=r"frames are uint8\[3\].*uint8\[n, 24, 64\]"):
        chain(np.zeros(3, np.uint8))


def test_two_lines_of_four_are_kept() -> None:
    """Between pixels no others are needed: an arena of two lines, and a picture."""
    camera = images("rgb565", 40, 40, (8, 8), crop=(0, 0, 32, 40))
    arena = pybuild.build(camera, push="lines").tables.arena_bytes
    assert arena <= 2 * 80 + 8 * 8 * 3 + 32
