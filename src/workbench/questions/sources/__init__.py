"""Question graphs from the KILT knowledge source and a Wikidata truthy dump (S3 2.1, App. B)."""
