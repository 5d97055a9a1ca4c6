"""Build cloze."""
