"""Rollouts that end in an answer with prose: the report agent's, ours or imported."""
