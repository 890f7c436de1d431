"""Simulated boards: QEMU and Unicorn, and what they count."""
