"""Games in text: what a language model is asked, and what its answer says."""
