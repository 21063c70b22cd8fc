"""Counterfactual decodes of recorded trajectories."""
