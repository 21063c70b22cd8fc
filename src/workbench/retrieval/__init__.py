"""Retrieval: encoders, BM25 and dense indices, and the searcher over them."""

from .config import BM25Config, RetrievalConfig
from .index import build_index
from .searcher import Hit, Searcher, load_searcher

__all__ = ["BM25Config", "Hit", "RetrievalConfig", "Searcher", "build_index", "load_searcher"]
