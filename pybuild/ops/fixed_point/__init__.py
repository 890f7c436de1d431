"""Quantised arithmetic: every rounding rule, and functions in fixed point."""
