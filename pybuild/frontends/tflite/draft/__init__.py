"""A Graph while it is being made of a .tflite file: what is known so far."""
