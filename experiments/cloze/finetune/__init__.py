"""Fine-tune."""
