"""The kernels that serve each operator, and their common parts; one file per
operator.
"""
