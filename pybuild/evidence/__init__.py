"""What an auditor files of a build: what it was made of, how, and what is known."""
