"""What stands at the ends of a graph: how images come, and in which type."""
