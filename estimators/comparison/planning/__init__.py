"""Designs of comparison studies: simulated quickly, valued by closed forms, and questions that are chosen one by one."""
