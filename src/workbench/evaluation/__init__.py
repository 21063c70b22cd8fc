"""Scoring of answers and trajectories.

``answers`` holds EM, F1 and inclusion; ``metrics`` scores trajectories one by one; ``summary``
averages them with intervals.  Only ``answers`` is imported here, because rewards need it in
places where pandas and the statistics are dead weight.
"""

from .answers import accepted_answers, exact_match, f1_score, inclusion, normalise_answer

__all__ = ["accepted_answers", "exact_match", "f1_score", "inclusion", "normalise_answer"]
