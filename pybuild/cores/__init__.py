"""One net on several equal cores: each computes a share of every call of a kernel."""
