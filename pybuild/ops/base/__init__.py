"""What every operator is, and which functions of the user's there are."""
