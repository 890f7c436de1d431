"""Imported first by the command line: a short process has little garbage."""

from __future__ import annotations

import gc

# objects made between two looks; Python's own 700 is a tenth of `crt inspect`, and of a
# model of 1,000 layers some 6 million are needed to the end, of which looks find none
gc.set_threshold(10_000_000)
