"""Mutations of regions of memory, for mutate.py: its five fields."""

_UNIT = "tests/plan/test_regions.py"

REGIONS = (
    (
        "the fastest region first",
        "pybuild/plan/regions/assignment.py",
        "fast_first = sorted(specs, key=lambda s: s.rank)",
        "fast_first = sorted(specs, key=lambda s: -s.rank)",
        _UNIT,
    ),
    (
        "what a region may hold",
        "pybuild/plan/regions/assignment.py",
        "return at if at + size <= self.spec.bytes else None",
        "return at if at + size <= self.spec.bytes + 4 else None",
        _UNIT,
    ),
    (
        "swaps between regions",
        "pybuild/plan/regions/assignment.py",
        "            if not best.better():\n",
        "            if True:\n",
        _UNIT,
    ),
    (
        "rows that a kernel meets again",
        "pybuild/plan/regions/traffic.py",
        "min(first + access.window, access.rows)",
        "min(first + 1, access.rows)",
        _UNIT,
    ),
    (
        "the region of scratch",
        "pybuild/emit/tables/assemble.py",
        "own, at = step.scratch_region,",
        "own, at = 0,",
        _UNIT,
    ),
    (
        "the region of hot weights",
        "pybuild/emit/tables/assemble.py",
        "self._single(place.at, place.region, comment)",
        "self._single(place.at, 0, comment)",
        _UNIT,
    ),
    (
        "weights that are read once",
        "pybuild/plan/regions/weight_cache.py",
        "LEAST_CALLS = 4",
        "LEAST_CALLS = 0",
        _UNIT,
    ),
    (
        "what a region has left for the next model of an image",
        "pybuild/plan/image_memory.py",
        "free = max(0, spec.bytes - used)",
        "free = spec.bytes",
        _UNIT,
    ),
    (
        "arenas of an image that end behind their region",
        "pybuild/plan/image_memory.py",
        "bytes=free // ARENA_ALIGN * ARENA_ALIGN",
        "bytes=free",
        _UNIT,
    ),
    (
        "the board's memory of a region",
        "pybuild/boards/firmware/model_header.py",
        "if row.name in memories else",
        "if row.name in () else",
        "tests/boards/test_board_regions.py",
    ),
)
