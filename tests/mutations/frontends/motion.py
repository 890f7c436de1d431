"""Mutations of features of accelerometers, for mutate.py: its five fields."""

_NEAR = "tests/features/test_motion.py::test_integers_are_near_real_numbers"
_FILE = "pybuild/features/motion.py"

MOTION = (
    (
        "the mean that is taken off",
        _FILE,
        'apart = self.map("subtract", wide, mean)',
        'apart = self.map("add", wide, mean)',
        _NEAR,
    ),
    (
        "half of what is shifted out",
        _FILE,
        '"shift_right", self.map("add", y, half), self.map("add", places, one)',
        '"shift_right", y, self.map("add", places, one)',
        _NEAR,
    ),
    (
        "the last frequency",
        _FILE,
        'ends[-1] = int(np.searchsorted(places, high, "right"))',
        "ends[-1] = int(np.searchsorted(places, high))",
        _NEAR,
    ),
)
