"""The step tables of a plan as numbers and names; no text."""
