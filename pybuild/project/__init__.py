"""The project file, crt.toml: which models are built, with which options.

Knows the table of options and TOML; loads no model.
"""
