"""What a new user calls first: what is installed (``doctor``), what it can do (``demo``), completion in a shell."""
