"""Mutations of what stands before a net that sees, for mutate.py: its five fields."""

_IMAGES = "tests/features/test_images.py"
_NET = f"{_IMAGES}::test_normalisation_is_in_the_weights"

IMAGES = (
    (
        "the lines above the part of the frame",
        "pybuild/kernels/portable/image.py",
        "x.name, x.shape[1], self.row_bytes, self.window, given, -top",
        "x.name, x.shape[1], self.row_bytes, self.window, given, -self.low",
        f"{_IMAGES}::test_bits_of_every_format_line_by_line[rgb565]",
    ),
    (
        "the pair that a pixel of YUV422 is in",
        "pybuild/kernels/portable/image.py",
        'pair = k.let("pair", (pixel >> 1) * 4)',
        'pair = k.let("pair", pixel * 2)',
        f"{_IMAGES}::test_bits_of_every_format_line_by_line[yuyv]",
    ),
    (
        "a half of a mean",
        "pybuild/ops/sensors/image.py",
        "held = (total * np.asarray(layer.factors) + (1 << (BITS - 1))) >> BITS",
        "held = (total * np.asarray(layer.factors)) >> BITS",
        f"{_IMAGES}::test_colours_of_rgb565_are_the_nearest",
    ),
    (
        "centres on centres",
        "pybuild/ops/sensors/image.py",
        "middle = (i + Fraction(1, 2)) * step - Fraction(1, 2)",
        "middle = i * step",
        f"{_IMAGES}::test_between_pixels_as_onnx_runtime[size1]",
    ),
    (
        "the edges of a padded picture",
        "pybuild/features/normalise.py",
        'ones = bool(any(first.attrs.get("pads", ())) and any(mean))',
        "ones = False",
        f"{_NET}[1]",
    ),
    (
        "the mean in the bias",
        "pybuild/features/normalise.py",
        "bias = bias + moved.sum((1, 2, 3))",
        "bias = bias - moved.sum((1, 2, 3))",
        f"{_NET}[0]",
    ),
    (
        "the integers of a net's input",
        "pybuild/features/image_chain.py",
        "front = images.graph if is_float",
        "front = images.graph if True",
        f"{_IMAGES}::test_a_net_of_integers_gets_its_own[int8]",
    ),
)
