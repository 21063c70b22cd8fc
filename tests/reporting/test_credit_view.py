"""One group's credit as numbers, strips and a page: chosen by rule, and true to the methods."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from workbench.errors import WorkbenchError
from workbench.methods import Context, build_method, load_condition
from workbench.questions.graph import Evidence, Node
from workbench.reporting.credit_strips import credit_strips
from workbench.reporting.credit_view import (
    colour_of,
    credit_page,
    group_credit,
    ink_on,
    save_credit_page,
    telling_group,
)

NAMES = ("oo", "cov_scalar", "cov_local", "cov_permute")


@pytest.fixture(scope="module")
def tokenizer():
    """Token 4 is markup that the page must not take for its own, every other n is "w<n>"."""
    words = {f"w{i}" if i != 4 else "<b>": i for i in range(80)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="w0")


@pytest.fixture(scope="module")
def methods(small):
    context = Context(small.CORPUS)
    return {name: build_method(load_condition(name), context) for name in NAMES}


@pytest.fixture(scope="module")
def item(small):
    first = Node("v1", "Who <i>?", ("x",), (Evidence("p0", 1, ((5, 8),)),))
    second = Node("v2", "Whose #1?", ("y",), (Evidence("p1", 1, ((5, 8),)),), ("v1",))
    return small.item_of([first, second], answers=("y & z",), item_id="told")


@pytest.fixture(scope="module")
def group(small, item):
    """Covers v1 then v2; covers nothing; covers nothing and is cut off."""
    one, two, none = (small.Searched((small.CORPUS[c],)) for c in ("p0#1.0", "p1#1.0", "p3#1.0"))
    made = [
        small.searched(one, two, answer="y z"),
        small.searched(none, answer="q"),
        small.searched(none, answer=None, truncated=True),
    ]
    return [replace(t, group=item.item_id, item_id=item.item_id) for t in made]


@pytest.fixture(scope="module")
def view(item, group, methods, tokenizer, small):
    return group_credit(item, group, methods, tokenizer, small.CORPUS)


class TestChoice:
    def flat(self, small, name, found="p3#1.0"):
        search = small.Searched((small.CORPUS[found],))
        return [replace(small.searched(search), group=name, item_id="told") for _ in range(3)]

    def rows(self, item, groups, methods):
        trajectories = [t for group in groups for t in group]
        items = [item] * len(trajectories)
        return telling_group(items, trajectories, methods["cov_local"], methods["cov_permute"])

    def lively(self, small, name):
        """One hit among three: a permutation that moves its mass turns praise into blame."""
        made = self.flat(small, name)
        return [*self.flat(small, name, "p0#1.0")[:1], *made[1:]]

    def test_groups_with_equal_events_are_passed_over(self, small, item, methods):
        names = [f"group {n}" for n in range(6)]
        groups = [self.flat(small, "flat"), *(self.lively(small, n) for n in names)]
        rows = self.rows(item, groups, methods)
        assert len(rows) == 3 and rows[0] >= 3
        outcome = np.zeros(21)
        trajectories = [t for group in groups for t in group]
        ours, moved = (
            methods[m].masses([item] * 21, trajectories, outcome)
            for m in ("cov_local", "cov_permute")
        )
        turned = [i for i in range(21) if (ours[i] * moved[i] < 0).any()]
        assert rows[0] == 3 * (min(turned) // 3) and set(turned) & set(rows)

    def test_several_nodes_come_before_one(self, small, item, methods):
        names = [f"group {n}" for n in range(6)]
        single = small.item_of([item.nodes[0]], answers=("y",), item_id="told")
        trajectories = [t for name in names for t in self.lively(small, name)]
        pair = methods["cov_local"], methods["cov_permute"]
        first = telling_group([single] * 18, trajectories, *pair)
        items = [single if t.group == names[first[0] // 3] else item for t in trajectories]
        assert telling_group(items, trajectories, *pair)[0] > first[0]

    def test_no_group_with_credit_is_an_error(self, small, item, methods):
        with pytest.raises(WorkbenchError, match="no search of any group"):
            self.rows(item, [self.flat(small, "flat")], methods)


class TestNumbers:
    def test_searches_say_what_they_covered_and_earned(self, view, group):
        table = view.searches.set_index(["rollout", "search"])
        assert table["covers"].tolist() == [["v1"], ["v2"], [], []]
        assert table["event"].tolist() == [0.5, 0.5, 0.0, 0.0]
        row = table.loc[(0, 0)]
        # two eligible rollouts at step 1: z(z(.5, 0)) is +-1/sqrt 2, and L / |Q| is 5 / 2
        assert row["cov_local"] - row["oo"] == pytest.approx(0.5 * 2**-0.5 * 5 / 2, rel=1e-4)
        assert table.loc[(1, 0), "cov_local"] < table.loc[(1, 0), "oo"]
        # a step with one eligible rollout, and a rollout that is cut off, have no local credit
        for place in ((0, 1), (2, 0)):
            assert table.loc[place, "cov_local"] == table.loc[place, "oo"]

    def test_outside_queries_local_credit_is_the_outcome_alone(self, view):
        outside = view.outside
        assert outside["outcome"].tolist() == [1.0, 0.0, 0.0]
        assert outside["disabled"].tolist() == ["", "", "truncated"]
        assert outside["cov_local"].tolist() == outside["oo"].tolist()
        assert outside["cov_scalar"].tolist() != outside["oo"].tolist()

    def test_the_colours_reach_to_the_largest_advantage(self, view):
        assert view.bound == pytest.approx(view.tokens["advantage"].abs().max())
        assert view.methods == list(NAMES)


class Reader(HTMLParser):
    """Tokens of a page with style and title; refuses tags that are closed in another order."""

    def __init__(self):
        super().__init__()
        self.open, self.tokens, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)
        given = dict(attrs)
        if "token" in given.get("class", "") and "title" in given:
            self.tokens.append(given)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


class TestPage:
    @pytest.fixture(scope="class")
    def page(self, view):
        return credit_page(view, "The base policy.")

    def test_every_generated_token_of_every_method_has_its_number(self, page, view, group):
        reader = Reader()
        reader.feed(page)
        assert not reader.open
        generated = sum(int(t.generated.sum()) for t in group)
        assert len(reader.tokens) == 4 * generated
        tokens = view.tokens[~view.tokens["segment"].isin(("prompt", "observation", "padding"))]
        order = tokens.sort_values(["rollout", "method"], kind="stable", key=lambda c: c.map(
            {n: i for i, n in enumerate(NAMES)}.get) if c.name == "method" else c)  # fmt: skip
        shown = [float(re.match(r"A = ([+-]?[\d.]+)", t["title"])[1]) for t in reader.tokens]
        assert shown == pytest.approx(order["advantage"].tolist(), abs=6e-4)

    def test_what_policies_write_is_no_markup(self, page):
        assert "&lt;b&gt;" in page and "<b>w" not in page and "y &amp; z" in page
        assert "Who &lt;i&gt;?" in page

    def test_it_needs_nothing_else(self, page):
        assert "http" not in page and "<script" not in page and "src=" not in page
        for words in ("outcome only (F1)", "Cov-permute", "e = 0.5000", "covers v1",
                      "covers nothing new", "local term is disabled: truncated",
                      "query of search 1", "The base policy."):  # fmt: skip
            assert words in page

    def test_it_is_saved_whole(self, view, page, tmp_path):
        path = save_credit_page(tmp_path / "credit.html", view, "The base policy.")
        assert path.read_text() == page and [p.name for p in tmp_path.iterdir()] == ["credit.html"]


class TestColours:
    def test_opposite_advantages_are_opposite_sides_of_white(self):
        assert colour_of(0.0, 2.0) == "#f7f7f6"
        red, _, blue = (int(colour_of(1.5, 2.0)[i : i + 2], 16) for i in (1, 3, 5))
        assert red > blue
        red, _, blue = (int(colour_of(-1.5, 2.0)[i : i + 2], 16) for i in (1, 3, 5))
        assert blue > red
        assert colour_of(9.0, 2.0) == colour_of(2.0, 2.0)

    def test_text_can_be_read_on_every_shade(self):
        def light(colour):
            parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
            linear = [c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
            return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

        for value in np.linspace(-1, 1, 41):
            back = colour_of(value, 1.0)
            pair = sorted((light(back), light(ink_on(back))))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) > 4.5, value


class TestStrips:
    def test_a_strip_for_each_method_holds_the_advantages(self, view, group):
        figure = credit_strips(view)
        blocks = figure.axes[:3]
        assert [len(axis.images) for axis in blocks] == [4, 4, 4]
        for row, axis in enumerate(blocks):
            for image, name in zip(axis.images, NAMES):
                drawn = image.get_array().compressed()
                part = view.tokens[
                    (view.tokens["method"] == name) & (view.tokens["rollout"] == row)
                ]
                expected = part["advantage"].to_numpy()[group[row].generated]
                assert drawn[np.isfinite(drawn)] == pytest.approx(expected)

    def test_queries_are_framed_and_events_written(self, view):
        first = credit_strips(view).axes[0]
        texts = [t.get_text() for t in first.texts]
        assert texts == ["1", "2", "e = 0.50", "e = 0.50"]
        assert len(first.patches) == 2 * 4 + 2
        assert "covers v1" in first.get_xlabel()
        assert "local term disabled: truncated" in credit_strips(view).axes[2].get_title(loc="left")
