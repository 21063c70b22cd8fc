"""Published values: exact text, numbers, provenance, and what has to add up."""

import math

import pytest

from workbench.errors import WorkbenchError
from workbench.reporting.published import PAPERS, number, published, published_cell, tables


@pytest.mark.parametrize(
    ("text", "value"),
    [("+0.102", 0.102), (".004", 0.004), ("1,661", 1661), ("-1.440", -1.44), ("1e-6", 1e-6)],
)
def test_numbers(text, value):
    assert number(text) == value


def test_what_is_no_number():
    assert math.isnan(number("n/a")) and math.isnan(number(""))
    with pytest.raises(WorkbenchError, match="AdamW"):
        number("AdamW")


def test_every_file_reads_as_text_and_names_its_paper():
    assert {p: len(tables(p)) for p in PAPERS} == {
        "search_g1": 30,
        "rgv": 22,
        "retrieval_credit": 10,
    }
    for paper in PAPERS:
        for table in tables(paper):
            frame = published(paper, table)
            assert len(frame) and set(frame["paper"]) == {paper}
            assert frame.map(lambda cell: isinstance(cell, str)).all(axis=None)
            assert "note" not in frame.columns


def test_printed_precision_is_kept():
    frame = published("search_g1", "1")
    row = frame[(frame["method"] == "Base") & (frame["metric"] == "Search/Q")].iloc[0]
    assert row["value"] == "0.000"
    assert "n/a" in set(frame["value"])


def test_cells_by_hand():
    keys = {"model": "Qwen2.5-3B-Instruct", "dataset": "NQ"}
    cell = published_cell("search_g1", "1", method="Search-R1", metric="EM", **keys)
    assert (cell.printed, cell.value, cell.sd) == ("0.352", 0.352, 0.019)
    assert cell.source == "S1 Table 1, NQ, Search-R1"
    average = published_cell("retrieval_credit", "1", dataset="Avg", method="OO")
    assert average.printed == "51.25" and average.value == pytest.approx(0.5125)
    assert published_cell("search_g1", "1", method="Base", metric="TC", **keys) is None
    assert published_cell("search_g1", "1", method="no such method") is None
    setting = published_cell("search_g1", "hyperparameters", metric="lambda_g")
    assert setting.value == 0.6


def test_unknown_places_are_refused():
    with pytest.raises(WorkbenchError, match="no table '99'"):
        published("rgv", "99")
    with pytest.raises(WorkbenchError, match="no published values of 'gpt'"):
        tables("gpt")
    with pytest.raises(WorkbenchError, match="no column 'colour'"):
        published_cell("rgv", "1", colour="red")
    with pytest.raises(WorkbenchError, match="cells of table 1 of rgv fit"):
        published_cell("rgv", "1", method="RGV")


def test_the_average_of_s3_is_the_micro_average_of_its_sets():
    frame = published("retrieval_credit", "1")
    part = frame[frame["method"] == "OO"].set_index("dataset")
    sizes = part["n"].map(number)
    total = sum(number(part.loc[d, "value"]) * sizes[d] for d in part.index if d != "Avg")
    assert total / sizes["Avg"] == pytest.approx(number(part.loc["Avg", "value"]), abs=0.005)


def test_the_anchor_counts_of_s2_are_whole_questions():
    """590 of 830 is the 71.1 % of Table 1; 616 have a right rollout (its §6.4)."""
    keys = {"dataset": "BrowseComp-Plus", "model": "Tongyi-DeepResearch"}
    shares = [published_cell("rgv", "1", method=m, **keys).value for m in ("RGV", "Oracle")]
    assert shares == [pytest.approx(590 / 830, abs=5e-4), pytest.approx(616 / 830, abs=5e-4)]
