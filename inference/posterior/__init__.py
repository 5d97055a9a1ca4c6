"""The posterior of any model: samplers, convergence, groups, leave-one-out, files, simulation-based calibration."""
