"""Operators that only move values: where they stand, and what they become."""
