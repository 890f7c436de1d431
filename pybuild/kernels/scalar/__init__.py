"""Kernels for cores that multiply one by one: Cortex-M0, M3, RV32."""
