"""Files that are read and written, and what is printed of them. Whoever wrote one may
be a stranger: kinds, sizes and depths are limited before anything is made of it.
"""
