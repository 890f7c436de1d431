"""Products of two computed tensors: heads that share keys and values."""
