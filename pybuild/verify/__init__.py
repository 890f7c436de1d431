"""A build against a reference interpreter: equality, nearness, time."""
