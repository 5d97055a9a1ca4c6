"""What every experiment shares: what a run leaves behind, and whether it has to run at all."""
