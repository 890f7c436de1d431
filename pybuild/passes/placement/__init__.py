"""Decides which device computes what, and adds the copies between devices."""
