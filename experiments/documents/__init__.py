"""Documents: the texts that studies are made from, and corpora that models are scored on."""
