"""The bytes of a .pt2 archive as plain, checked values."""
