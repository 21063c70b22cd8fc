"""What stands for what: pools by kind, swaps of a few names, a renaming of all of them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.policy.demonstrations import PHRASES
from workbench.policy.lookups import lookups_of
from workbench.policy.names import Names
from workbench.questions.graph import Evidence, Item, Node
from workbench.questions.relations import BY_NAME, Fact
from workbench.seeding import generator

# Alphaland, Betaland and Gammaland; Delta Land is of two words. A city, a country and a word of
# the questions are each told twice.
TOLD = [
    ("aa", "Alphaland", "capital", "Axe"),
    ("aa", "Alphaland", "export_partner", "Betaland"),
    ("aa", "Alphaland", "language", "Latin"),
    ("bb", "Betaland", "capital", "Bow"),
    ("bb", "Betaland", "export_partner", "Faraway"),
    ("bb", "Betaland", "language", "Greek"),
    ("cc", "Gammaland", "capital", "Gammaland"),
    ("cc", "Gammaland", "symbol", "lion"),
    ("cc", "Gammaland", "demonym", "Latin"),
    ("dd", "Delta Land", "capital", "Cup"),
    ("dd", "Delta Land", "symbol", "capital"),
    ("dd", "Delta Land", "second_city", "New Cup"),
]
FACTS = [Fact(f"{p}.{r}", p, title, r, answer, 1, 9, 12) for p, title, r, answer in TOLD]
BY_ID = {f.fact_id: f for f in FACTS}
COUNTRIES = {"Alphaland", "Betaland", "Gammaland", "Faraway"}
WORDS = "Alphaland Betaland Gammaland Faraway Axe Bow Cup New Latin Greek lion eagle What".split()


def vocabulary():
    """A tokenizer of words, known ones first; (text -> ids, id -> word)."""
    known = {word: number for number, word in enumerate(WORDS)}

    def ids(text):
        return [known.setdefault(word, len(known)) for word in text.split()]

    return ids, known


def item(*answers):
    """A question of one node for each tuple of answers."""
    nodes = tuple(
        Node(f"v{n}", "What?", own, (Evidence("aa", 1, ((9, 12),)),), (), "aa.capital")
        for n, own in enumerate(answers, start=1)
    )
    return Item("1:x", "What?", nodes[-1].answers, "1-hop, single", nodes, "train")


def make(facts=FACTS, items=(), spoken=("Question: ?",)):
    ids, known = vocabulary()
    return Names(ids, facts, items, spoken), ids, known


def said(tokens, known):
    word = {number: word for word, number in known.items()}
    return " ".join(word[t] for t in tokens.tolist())


def renamed(names, known, seed):
    """Every word -> what it becomes."""
    tokens = np.arange(len(known))
    names.rename(tokens, generator("rename", seed))
    word = list(known)
    return {word[old]: word[new] for old, new in enumerate(tokens.tolist())}


def test_pools_by_hand():
    names, ids, _ = make()
    assert names.titles == ["Alphaland", "Betaland", "Gammaland"]
    assert [ids(t) for t in names.titles] == [[t] for t in names.title_tokens]
    assert {kind: {WORDS[t] if t < len(WORDS) else "capital" for t in own}
            for kind, own in names.answers.items()} == {
        "city": {"Axe", "Bow", "Cup", "Gammaland"}, "country": {"Betaland", "Faraway"},
        "language": {"Latin", "Greek"}, "symbol": {"lion", "capital"}, "demonym": {"Latin"},
    }  # fmt: skip
    assert all(own == sorted(own) for own in names.answers.values())
    assert names.of_kind(BY_ID["dd.second_city"]) == names.answers["city"]
    assert names.of_kind(Fact("x", "x", "X", "currency", "mark", 1, 0, 4)) == []


class TestRename:
    @given(st.integers(0, 2**40))
    @settings(max_examples=50, deadline=None)
    def test_each_kind_is_permuted_among_itself(self, seed):
        names, _, known = make()
        table = renamed(names, known, seed)
        assert sorted(table.values()) == sorted(table)
        # Gammaland is a city, too, and Latin a demonym: each belongs to the first kind
        for kind in (COUNTRIES, {"Axe", "Bow", "Cup"}, {"Latin", "Greek"}):
            assert {table[name] for name in kind} == kind
        named = COUNTRIES | {"Axe", "Bow", "Cup", "Latin", "Greek"}
        assert all(table[word] == word for word in known if word not in named)

    def test_every_order_of_a_kind_comes_up(self):
        names, _, known = make()
        tables = [renamed(names, known, seed) for seed in range(400)]
        orders = Counter(tuple(t[c] for c in ("Axe", "Bow", "Cup")) for t in tables)
        assert len(orders) == 6 and min(orders.values()) > 400 / 6 / 2
        # kinds are drawn independently: both languages change places in half of all draws
        pairs = Counter((t["Axe"] == "Axe", t["Latin"] == "Latin") for t in tables)
        assert pairs[True, True] / 400 == pytest.approx(1 / 6, abs=0.095)  # five standard errors

    def test_one_sequence_by_hand(self):
        names, ids, known = make()
        text = "What is the capital of Alphaland ? Alphaland : Axe Betaland : Bow Axe"
        tokens = np.asarray(ids(text))
        before = tokens.copy()
        names.rename(tokens, generator("rename", 3))  # in place
        table = renamed(names, known, 3)
        assert table["Alphaland"] != "Alphaland" and table["Axe"] != "Axe"
        assert said(tokens, known) == " ".join(table[word] for word in text.split())
        assert said(before, known) == text and tokens.dtype == before.dtype

    def test_words_of_questions_queries_and_protocol_stay(self):
        """A symbol called capital, and whatever the protocol says."""
        assert renamed(*make()[::2], 0)["capital"] == "capital"
        for spoken, free in ((("Not Axe there",), {"Bow", "Cup"}), ((), {"Axe", "Bow", "Cup"})):
            names, _, known = make(spoken=spoken)
            tables = [renamed(names, known, seed) for seed in range(30)]
            moved = {w for t in tables for w in ("Axe", "Bow", "Cup") if t[w] != w}
            assert moved == free

    def test_two_names_of_one_entity_stay(self):
        """Only a second name of one token is in the way."""
        for answers, free in (
            (("Faraway", "Alphaland"), {"Betaland", "Gammaland"}),
            (("Faraway", "Far Away"), COUNTRIES),
            (("Faraway",), COUNTRIES),
        ):
            names, _, known = make(items=[item(("Axe",), answers)])
            tables = [renamed(names, known, seed) for seed in range(30)]
            assert {w for t in tables for w in known if t[w] != w} & COUNTRIES == free

    def test_nothing_to_rename(self):
        names, ids, known = make(facts=[FACTS[10]])  # a title of two words, a symbol that stays
        tokens = np.asarray(ids("Delta Land : capital"))
        names.rename(tokens, generator("rename", 0))
        assert said(tokens, known) == "Delta Land : capital"


class TestSwap:
    TEXT = "What is the capital of Alphaland ? Alphaland : Axe Betaland : Bow"

    def swap(self, seed, asked=None, answers=True, subjects=True, text=TEXT, facts=None):
        names, ids, known = make()
        tokens = np.asarray(ids(text))
        facts = [BY_ID["aa.capital"]] if facts is None else facts
        asked = item(("Axe",)) if asked is None else asked
        names.swap(tokens, asked, facts, answers, subjects, generator("swap", seed))
        return said(tokens, known)

    def test_names_come_in_that_were_not_in_sight(self):
        """A city for the city, the one title that is left for the title."""
        seen = {self.swap(seed) for seed in range(60)}
        text = "What is the capital of Gammaland ? Gammaland : {} Betaland : Bow"
        # where the city is called Gammaland, no title is left; eight draws may all be in sight
        wanted = {text.format("Cup"), self.TEXT.replace("Axe", "Gammaland")}
        kept = {text.format("Axe"), self.TEXT.replace("Axe", "Cup"), self.TEXT}
        assert wanted <= seen <= wanted | kept

    def test_only_what_is_wanted(self):
        assert {self.swap(s, answers=False, subjects=False) for s in range(9)} == {self.TEXT}
        only = Counter(self.swap(s, answers=False) for s in range(60))
        assert only.keys() <= {self.TEXT, self.TEXT.replace("Alphaland", "Gammaland")}
        assert only[self.TEXT] < 12  # (2/3) ** 8 of all draws give up
        only = {self.swap(s, subjects=False) for s in range(60)}
        wanted = {self.TEXT.replace("Axe", new) for new in ("Cup", "Gammaland")}
        assert wanted <= only <= wanted | {self.TEXT}

    def test_two_names_of_one_entity_stay(self):
        two = item(("Axe", "Alphaland"))
        assert {self.swap(seed, two) for seed in range(9)} == {self.TEXT}
        other = item(("Axe", "Axe Town"))  # a second name of two words is not in the way
        assert {self.swap(s, other) for s in range(9)} == {self.swap(s) for s in range(9)}

    def test_names_of_two_words_and_kinds_of_one_name_stay(self):
        text = "What is the largest city of Delta Land ? New Cup . Latin"
        asked = [BY_ID["dd.second_city"], BY_ID["cc.demonym"]]
        made = {self.swap(s, item(("New Cup",)), subjects=False, text=text, facts=asked)
                for s in range(9)}  # fmt: skip
        assert made == {text}

    def test_what_came_in_is_not_swapped_again(self):
        """Axe may become Bow, and the fact about Bow leaves it as it is."""
        facts, text = [BY_ID["aa.capital"], BY_ID["bb.capital"]], "Alphaland : Axe Greek"
        made = {self.swap(s, subjects=False, text=text, facts=facts) for s in range(60)}
        assert made == {f"Alphaland : {new} Greek" for new in ("Bow", "Cup", "Gammaland")}


# -- demonstrations --------------------------------------------------------------------------

NO_SWAPS = {"swap_answer": 0.0, "swap_subject": 0.0}


@pytest.fixture(scope="module")
def plain(demonstrators):
    return demonstrators(**NO_SWAPS)


@pytest.fixture(scope="module")
def renaming(demonstrators):
    return demonstrators(swap_answer=1.0, swap_subject=1.0, renamed=1.0)


@pytest.fixture(scope="module")
def questions(plain):
    return plain.reading[:40] + [i for pool in plain.longer for i in pool[:25]]


def words(world, tokens):
    return world.tokenizer.convert_ids_to_tokens(tokens.tolist())


def kinds_of(world):
    """Name -> its kinds; pages are countries."""
    kinds = {f.title: {"country"} for f in world.facts.values()}
    for fact in world.facts.values():
        kinds.setdefault(fact.answer, set()).add(BY_NAME[fact.relation].kind)
    return kinds


def spoken_words(world, plain):
    """What is said beside names: templates, tags, phrases, field labels."""
    texts = [PHRASES, plain.protocol.config.prompt.format(question="")]
    texts += ["<think> </think> <search> </search> <information> </information> <answer>",
              "</answer> <eos>"]  # fmt: skip
    for relation in BY_NAME.values():
        own = (*relation.questions, relation.query, relation.phrase, relation.described,
               relation.shared)  # fmt: skip
        texts += [text.format(s="", o="", a="", b="") for text in own]
        texts.append(relation.field)
    return {word for text in texts for word in world.tokenizer.tokenize(text)}


def test_a_renaming_of_the_whole_vocabulary(world, plain):
    kinds, spoken = kinds_of(world), spoken_words(world, plain)
    everything = np.arange(len(world.tokenizer))
    moved = Counter()
    for seed in range(20):
        tokens = everything.copy()
        plain.names.rename(tokens, generator("vocabulary", seed))
        assert sorted(tokens) == everything.tolist()
        for old, new in zip(words(world, everything), words(world, tokens), strict=True):
            if old != new:
                assert kinds[old] & kinds[new]
                moved[old] += 1
    assert not moved.keys() & spoken
    short = [name for name in kinds if len(world.tokenizer.tokenize(name)) == 1]
    still = set(short) - moved.keys()
    assert still == {"US"}  # "the ambassador of {s} to the US"
    assert np.mean([moved[name] for name in short]) > 15


def test_demonstrations_are_renamed_throughout(world, plain, renaming, questions):
    """The same draws with and without: one renaming of question, queries, passages, answer."""
    kinds, spoken = kinds_of(world), spoken_words(world, plain)
    searched, titles = 0, Counter()
    for asked in questions:
        a, b = (d.searched(asked, generator("names", asked.item_id)) for d in (plain, renaming))
        assert (a.mask == b.mask).all()
        old, new = words(world, a.tokens), words(world, b.tokens)
        if "<search>" not in old:
            assert old == new  # answered directly
            continue
        searched += 1
        forward, backward = dict(zip(old, new)), dict(zip(new, old))
        assert [forward[x] for x in old] == new and [backward[y] for y in new] == old
        assert all(forward[word] == word for word in spoken & forward.keys())
        assert all(kinds[x] & kinds[y] for x, y in forward.items() if x != y)
        for title in {x.fact.title for x in lookups_of(asked, world.facts)}:
            titles[forward[title] != title] += title in old
        opening = len(plain.protocol.prompt(asked.question))
        named = [x for x in old[:opening] if x in kinds]
        assert new[:opening] == [forward.get(x, x) for x in old[:opening]] and named
        *_, final, _, _ = new  # <answer> X </answer> <eos>
        start = new.index("<information>")
        if asked in plain.reading and asked.answers[0] in old[start:-3]:
            assert final in new[start:-3] and final == forward[asked.answers[0]]
    assert searched > 80
    assert titles[True] > 0.9 * titles.total()  # a permutation leaves one of many where it is


def test_only_searches_are_renamed(plain, renaming):
    for asked in plain.reading[:20]:
        for kind in ("statement", "masked_direct"):
            a, b = (getattr(d, kind)(asked, generator(kind, 0)) for d in (plain, renaming))
            assert a.tokens.tolist() == b.tokens.tolist()
    for copy in (False, True):
        a, b = (d.lookups(generator("lookups", 0), copy) for d in (plain, renaming))
        assert a.tokens.tolist() == b.tokens.tolist()


def test_a_share_is_renamed_and_the_rest_swapped(demonstrators, monkeypatch):
    told = Counter()
    monkeypatch.setattr(Names, "rename", lambda *args: told.update(["rename"]))
    monkeypatch.setattr(Names, "swap", lambda *args: told.update(["swap", args[-3:-1]]))
    half = demonstrators(renamed=0.5, swap_answer=1.0, swap_subject=0.0)
    asked = half.longer[1][0]  # its passages are always found
    for seed in range(400):
        half.searched(asked, generator("share", seed))
    assert told.total() - told[True, False] == 400 and told[True, False] == told["swap"]
    assert told["rename"] / 400 == pytest.approx(0.5, abs=0.125)
    told.clear()
    never = demonstrators(renamed=0.0, swap_answer=0.0, swap_subject=1.0)
    never.searched(asked, generator("share", 0))
    assert told == {"swap": 1, (False, True): 1}
