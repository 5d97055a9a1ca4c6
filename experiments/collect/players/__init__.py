"""Players that are not people: they play through the same pages as people do."""
