"""Language models that play the comparison game through its text."""
