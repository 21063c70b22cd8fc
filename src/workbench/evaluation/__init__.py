"""Scoring of answers and trajectories: EM, F1, inclusion, search and token counts."""

from .answers import accepted_answers, exact_match, f1_score, inclusion, normalise_answer

__all__ = ["accepted_answers", "exact_match", "f1_score", "inclusion", "normalise_answer"]
