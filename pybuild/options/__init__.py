"""Every option of pybuild, declared once: table.py; others print, read or check it.

Knows what a value looks like, not what it does.
"""
