"""Rankings: how far down a list of candidates the true token stands."""
