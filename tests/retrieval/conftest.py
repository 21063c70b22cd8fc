"""Hand-made corpora and a tiny, randomly initialised encoder in E5's file format."""

import numpy as np
import pytest

from workbench.corpus.records import Chunk, Extent
from workbench.corpus.store import Corpus, corpus_hash

TEXTS = [
    ("Mali", "Capital - name: Bamako\nLanguages: Bambara, French"),
    ("Norway", "Capital - name: Oslo\nLanguages: Norwegian, Sami"),
    ("Kenya", "Capital - name: Nairobi\nLanguages: English, Swahili"),
    ("Chile", "Exports - commodities: copper, fruit, wine"),
    ("Zambia", "Exports - commodities: copper, cobalt, tobacco"),
    ("Peru", "Exports - partners: China, United States"),
]


def corpus_of(pairs) -> Corpus:
    """A corpus with one chunk for each (title, text)."""
    chunks = [
        Chunk(f"{title}#{row}", title, title, text, (Extent(1, 0, len(text)),))
        for row, (title, text) in enumerate(pairs)
    ]
    return Corpus(chunks, corpus_hash(chunks))


@pytest.fixture(name="corpus_of", scope="session")
def corpus_of_fixture():
    return corpus_of


@pytest.fixture(scope="session")
def corpus():
    return corpus_of(TEXTS)


@pytest.fixture(scope="session")
def e5_folder(tmp_path_factory):
    """A BertModel of 2 layers and 16 dimensions, with its tokenizer, as saved by transformers."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("models") / "tiny-e5"
    letters = "abcdefghijklmnopqrstuvwxyz0123456789:,-"
    words = ["query", "passage", "capital", "languages", "exports", "copper", "name"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters]
    pieces += [f"##{c}" for c in letters]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    BertTokenizer(vocab={piece: i for i, piece in enumerate(pieces)}).save_pretrained(folder)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    return folder


class TableEncoder:
    """Vectors looked up by text, so that a test knows them."""

    def __init__(self, table: dict[str, np.ndarray]):
        self._table = table
        self.dimension = len(next(iter(table.values())))

    def encode(self, texts, kind):
        return np.array([self._table[t] for t in texts], np.float32).reshape(-1, self.dimension)


@pytest.fixture(scope="session")
def table_encoder():
    return TableEncoder
