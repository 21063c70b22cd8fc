"""From the settings of a profile to its questions: built from the corpus, or read from a file."""

from __future__ import annotations

from ..corpus.embedded import load_pages
from ..corpus.source import EMBEDDED, CorpusConfig, read_pages
from ..runs import project_root
from .build import QuestionConfig, QuestionSet, build_items
from .names import page_names
from .store import load_items


def read_questions(corpus: CorpusConfig, config: QuestionConfig) -> QuestionSet:
    """The questions of a profile.

    Those of a file (``workbench questions build`` makes one) are taken as they are; what was
    left out of them stands in the report beside that file.

    Raises
    ------
    WorkbenchError
        the file is missing or an item in it is faulty; questions are to be built and the
        corpus has no pages.
    """
    if config.source != EMBEDDED:
        return QuestionSet(load_items(project_root() / config.source), {})
    return build_items(read_pages(corpus), config, page_names(load_pages()))
