"""Designs of comparison studies: simulated quickly, and questions chosen one by one."""
