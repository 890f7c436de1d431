"""Which kernels a model gets: prices, choice, shared constants."""
