"""Scores of ranks compared: what they reward, what they separate, which tokens are easy."""
