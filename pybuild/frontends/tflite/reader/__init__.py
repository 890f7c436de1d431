"""Reads the bytes of a .tflite file as plain, checked values."""
