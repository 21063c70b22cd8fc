"""The base policy: tokenizer, demonstrations, training from scratch, its card, its store."""
