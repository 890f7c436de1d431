"""Layers that keep state: LSTM and SVDF, on every core."""
