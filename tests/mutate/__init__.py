"""Breaks the code in one place at a time; some test must notice each.

python_ops, c_ops, loop_ops  operators: what can be broken, found on the syntax
handmade   what only a person thinks of: the TOML files of tests/mutations/
draw       some of all by seed; survivors: those that no test can or does notice
nearest_tests, tree          which tests watch a place, and runs of them
"""
