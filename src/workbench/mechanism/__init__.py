"""Copy inflation and grounding: what documents in the context do to scores (S2 §3, §6.1)."""
