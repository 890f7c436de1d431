"""What all tests share: where the real models are, and what is made once for all."""

from __future__ import annotations

import copy
import fcntl
import gc
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compiled import keep_compiled, keep_objects

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure() -> None:
    keep_compiled()
    keep_objects()
    # what a test measures is made in it: tests of what is kept name a folder
    os.environ["CRT_CACHE"] = "off"
    # code of kernels is many small objects that live: looked over every 700 of them,
    # as Python does by itself, it takes a third longer to make
    gc.set_threshold(100_000, 50, 50)
    if importlib.util.find_spec("hypothesis"):  # tests of what is installed have none
        from hypothesis import settings

        # a machine that does other things, too, fails nothing
        settings.register_profile("any_time", deadline=None)
        settings.load_profile("any_time")


_FIRST_STATES: dict[str, dict[str, Any]] = {}


@pytest.fixture(autouse=True)
def same_numbers_in_any_order(request: pytest.FixtureRequest) -> None:
    """Each test draws of a generator of its module what it would draw alone."""
    for name, value in vars(request.module).items():
        if isinstance(value, np.random.Generator):
            key = f"{request.module.__name__}.{name}"
            state = copy.deepcopy(value.bit_generator.state)
            value.bit_generator.state = _FIRST_STATES.setdefault(key, state)


def models_folder() -> Path:
    """$CRT_MODELS, or shared/models beside the project."""
    given = os.environ.get("CRT_MODELS")
    return Path(given) if given else ROOT.parent / "shared" / "models"


def model_path(name: str) -> Path:
    """The file of a real model, or skips the test."""
    path = models_folder() / name
    if not path.is_file():
        pytest.skip(f"{name} is not in {models_folder()} (set CRT_MODELS)")
    return path


@pytest.fixture
def models() -> Path:
    """The folder of real models, or skips the test."""
    folder = models_folder()
    if not folder.is_dir():
        pytest.skip(f"no folder {folder} of real models (set CRT_MODELS)")
    return folder


def made_once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]
) -> Path:
    """The folder `name` that `make` filled, in one of the processes of this run."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # of the run: each of its processes has a folder below
    with open(base / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (base / name).exists():
            unfinished = base / f"{name}.new"
            make(unfinished)
            unfinished.rename(base / name)
    return base / name
