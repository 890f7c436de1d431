"""Mutations of the transform of features, for mutate.py: its five fields."""

_TEST = "tests/features/test_transform.py"

TRANSFORM = (
    (
        "what is raised before it is halved",
        "pybuild/ops/sensors/halving.py",
        "RAISED, RAISED_END = 2, 1",
        "RAISED, RAISED_END = 0, 0",
        f"{_TEST}::test_errors_are_less_than_those_of_kissfft",
    ),
    (
        "parts of a word that change places",
        "pybuild/kernels/portable/halving_fft.py",
        "pair = (HALF_SUB_TURNED, HALF_ADD_TURNED)",
        "pair = (HALF_ADD_TURNED, HALF_SUB_TURNED)",
        f"{_TEST}::test_bits_of_numpy[128-128-cortex-m4]",
    ),
    (
        "sums that are held",
        "pybuild/kernels/portable/halving_fft.py",
        "return self._kept([maximum(minimum(p, high), low) for p in parts])",
        "return self._kept(list(parts))",
        f"{_TEST}::test_bits_of_numpy[512-401-generic]",
    ),
    (
        "the last number without a partner",
        "pybuild/kernels/portable/halving_fft.py",
        "            if given % 2:\n",
        "            if given % 2 > 1:\n",
        f"{_TEST}::test_bits_of_numpy[16-11-generic]",
    ),
)
