"""Pages, paragraphs and chunks: readers, the embedded corpus, the corpus file with its hash."""
