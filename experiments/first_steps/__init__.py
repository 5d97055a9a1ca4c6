"""What a new user calls first: what is installed (``doctor``) and what it can do (``demo``)."""
