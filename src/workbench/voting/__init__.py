"""Voting over parallel rollouts: token sets, overlap and confidence weights, clusters, votes."""
