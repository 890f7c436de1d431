"""Bytes of a .tflite file as plain values, checked."""
