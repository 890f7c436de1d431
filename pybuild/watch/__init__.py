"""The compiler at work, for those who look: each stage of a build as text."""
