"""Many builds at once: every combination of models, targets, options, quantisations and
boards as a row of one table. Knows nothing of the command line.
"""
