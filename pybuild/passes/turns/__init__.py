"""Steps of a sequence that are written out, as one step and a loop, and back."""
