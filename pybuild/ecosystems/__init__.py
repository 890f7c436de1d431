"""A model and the runtime as packages: what Arduino, PlatformIO, ESP-IDF, Zephyr,
CMSIS-Pack, CMake, Meson and make take in. One layout, src/ with all that is compiled,
is all of them; the runtime is a package of its own, which any number of models share.
"""
