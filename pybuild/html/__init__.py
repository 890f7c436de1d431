"""Builds as HTML pages: one file each, no network, names quoted in one place."""
