"""Which device computes what, and the copies between devices."""
