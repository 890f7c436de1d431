"""Which region of memory each buffer lies in, and what is copied to a fast one."""
