"""Mutations of sweeps over many builds, for mutate.py."""

_KEYS = "tests/sweeps/test_keys.py::{}"
_SWEEP = "tests/sweeps/test_sweep.py::{}"
_LOSS = "tests/sweeps/test_loss.py::{}"

SWEEPS = (
    (
        "samples deep in a folder count",
        "pybuild/sweeps/job.py",
        'for file in sorted(path.rglob("*")):',
        'for file in sorted(path.glob("*")):',
        _KEYS.format("test_bytes_of_every_file_count"),
    ),
    (
        "the tool counts",
        "pybuild/sweeps/plan.py",
        "files=files, tool=tool_digest(),",
        'files=files, tool="",',
        _KEYS.format("test_the_tool_counts"),
    ),
    (
        "parameters beside a graph count",
        "pybuild/sweeps/plan.py",
        'return f"{model.digest}{content_of(beside)}"',
        "return model.digest",
        _KEYS.format("test_parameters_beside_a_graph_count"),
    ),
    (
        "a build that ends its worker is given up",
        "pybuild/sweeps/run.py",
        "if self.deaths[job.key] >= _TRIES]",
        "if self.deaths[job.key] >= 99]",
        _LOSS.format("test_a_build_that_kills_costs_its_own_row_alone"),
    ),
    (
        "what was in hand is done again",
        "pybuild/sweeps/run.py",
        "            lost += self.flying.values()\n",
        "",
        _LOSS.format("test_a_build_that_kills_costs_its_own_row_alone"),
    ),
    (
        "the front is of each model",
        "pybuild/sweeps/front.py",
        '{"" if across else row["model"]: 0 for row in known}',
        '{"": 0 for row in known}',
        _SWEEP.format("test_the_front_is_what_no_other_beats"),
    ),
    (
        "a file that has changed is not built",
        "pybuild/sweeps/build.py",
        "    if model_digest(model) != job.model:",
        "    if False:",
        _SWEEP.format("test_a_file_that_changes_meanwhile_fails_and_is_not_kept"),
    ),
    (
        "an entry whose report is gone is built again",
        "pybuild/sweeps/store.py",
        "there = report is None or (self.folder / report).is_file()",
        "there = True",
        _SWEEP.format("test_a_damaged_entry_is_built_again"),
    ),
)

# what the whole run samples, and --all does not
SAMPLED = (
    (
        "all tests without LLVM's passes in the whole run",
        "tests/near/sampled.py",
        "zlib.crc32(identity.encode()) % ONE_OF == 0",
        "False",
        "tests/house/test_quick.py",
    ),
    (
        "a sample where all was asked for",
        "tests/everything.py",
        "if both and marks else",
        "if both else",
        "tests/house/test_quick.py",
    ),
)
