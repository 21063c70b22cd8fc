"""Policies ready for inference, one interface (``base``): token ids in, ids and log-probs out."""
