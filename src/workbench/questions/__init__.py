"""Questions as graphs over facts of the corpus: relations, construction, splits, store."""
