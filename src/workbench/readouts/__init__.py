"""Readouts of the policy's own hidden states: features, probes, and the evaluator (S1 §3.2)."""
