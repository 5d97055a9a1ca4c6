"""Which questions to ask, and how many people."""
