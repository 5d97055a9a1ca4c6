"""The human loss where people also answered freely."""
