"""Which chip? What a model needs on each, and what there is."""
