"""A program for a board: its files, its link, and how large it is."""
