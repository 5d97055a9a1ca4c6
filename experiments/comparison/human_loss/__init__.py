"""Human loss."""
