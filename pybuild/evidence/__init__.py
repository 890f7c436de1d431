"""The documents that an auditor needs of a build: what it was made from, how, and what
is known."""
