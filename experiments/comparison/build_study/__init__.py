"""Build study."""
