"""Which chips a model fits: its needs on each, and the chip's memory."""
