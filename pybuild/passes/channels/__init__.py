"""Finds channels whose integer never changes, folds and drops them."""
