"""The embedded corpus as the profiles use it: the fields of the relations, all questions."""

import pytest

from workbench.corpus.embedded import load_pages, select_fields
from workbench.questions.build import QuestionConfig, build_items
from workbench.questions.names import page_names
from workbench.questions.relations import FIELDS, read_facts, read_lists


@pytest.fixture(scope="session")
def all_pages():
    return load_pages()


@pytest.fixture(scope="session")
def pages(all_pages):
    return select_fields(all_pages, FIELDS)


@pytest.fixture(scope="session")
def facts(pages):
    """Every fact by id, those of lists included."""
    return {f.fact_id: f for f in (*read_facts(pages), *read_lists(pages))}


@pytest.fixture(scope="session")
def names(all_pages):
    return page_names(all_pages)


@pytest.fixture(scope="session")
def built(pages, names):
    return build_items(pages, QuestionConfig(), names)


@pytest.fixture(scope="session")
def unlimited(pages, names):
    return build_items(pages, QuestionConfig(limits={}), names)
