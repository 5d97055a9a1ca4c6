"""Hydra configs, installed as a package so that the command finds them from any directory.

What lives here: ``config.yaml`` and one folder per group; no code. An option is one file, its name is what the user
types (``rounding=coarse``).
"""
