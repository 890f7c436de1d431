"""What a terminal shows: tables and progress."""
