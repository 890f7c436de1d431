"""Operators before a net: pictures of a camera, transforms of a sound."""
