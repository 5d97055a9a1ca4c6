"""Context length."""
