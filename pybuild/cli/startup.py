"""Imported first by the command line: a short process has little garbage."""

from __future__ import annotations

import gc

# objects made between two looks; Python's own 700 is a tenth of `crt inspect`
gc.set_threshold(200_000)
