"""Every graph that is drawn from a random small world is sound; counts, limits and pairs.

Worlds have four to ten entities.  ``f``, ``g`` and ``h`` describe their subjects and mostly have
one object, ``f`` and ``g`` stand in one paragraph; ``m`` and ``n`` are lists that subjects share.
"""

from collections import Counter
from dataclasses import replace
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.questions.categories import CATEGORIES, category_of
from workbench.questions.checks import check_item
from workbench.questions.compose import identify, identify_by_two, share, start, step
from workbench.questions.enumerate import Starts, draw_graphs, shared_pairs, twin_descriptions
from workbench.questions.graph import Evidence, Item
from workbench.questions.statements import Knowledge, Property, Statement
from workbench.seeding import generator, seed_of

OVER, APART, SHORT = (
    "over the limit of its category", "pages in different splits", "graph shortcut",
)  # fmt: skip
ALL = 10**9
PARAGRAPHS = {"f": 1, "g": 1, "h": 2, "m": 3, "n": 4}
PROPERTIES = {
    r: Property(r, "thing", (f"What is the {r} of {{s}}?",), f"the {r} of {{s}}",
                f"the thing whose {r} is {{o}}")
    for r in "fgh"
} | {
    r: Property(r, "thing", (f"Which {r} has {{s}}?",), f"a {r} of {{s}}",
                shared=f"the thing that is {r} of both {{a}} and {{b}}")
    for r in "mn"
}  # fmt: skip
ENTITIES = "abcdefghij"
SETTINGS = settings(max_examples=40, deadline=None)


def random_world(seed, size):
    """Triples over ``size`` entities; hypothesis alone would hardly ever draw a join."""
    rng = generator("world", seed, size)
    entities = ENTITIES[:size]
    triples = set()
    for subject in entities:
        for relation in "fgh":
            count = rng.choice([0, 1, 2], p=[0.4, 0.55, 0.05])
            triples |= {(subject, relation, o) for o in rng.choice(list(entities + "x"), count)}
        for relation in "mn":
            count = rng.integers(0, 4)
            triples |= {(subject, relation, o) for o in rng.choice(list(entities + "xyz"), count)}
    return sorted((s, r, str(o)) for s, r, o in triples if s != o)


def worlds():
    return st.builds(random_world, st.integers(0, 10**6), st.integers(4, 10))


def say(subject, relation, obj):
    evidence = Evidence(subject, PARAGRAPHS[relation], ((0, 1),))
    names = (subject.upper(),), (obj.upper(),)
    return Statement(f"{subject}{relation}{obj}", subject, relation, obj, *names, evidence)


def know(triples):
    return Knowledge([say(*t) for t in triples], PROPERTIES)


def starts_of(knowledge, most=4):
    """What a source would start from: named subjects, described ones, shared objects."""
    singles = []
    for statement in knowledge.statements.values():
        prop = knowledge.properties[statement.relation]
        if knowledge.only(statement.subject, statement.relation) is statement:
            singles.append(start(statement, prop, statement.subject_names[0], named=True))
        if prop.describes and len(knowledge.holders(statement.relation, statement.object)) == 1:
            singles.append(identify(statement, prop))
    conjunctive = [
        identify_by_two(*pair, PROPERTIES, "thing") for pair in twin_descriptions(knowledge, most)
    ]
    conjunctive += [
        share(first, other, PROPERTIES[first.relation], a.upper(), b.upper(), named=True)
        for first, other, a, b in shared_pairs(knowledge)
    ]
    return Starts(singles, conjunctive)


def parity(statement):
    return "test" if statement.subject in "cf" else "train"


class Draw:
    """One run with everything that it said: candidates that were asked about, and exclusions."""

    def __init__(self, triples, *, split_of=parity, limit=None, refused=0, most=4, **settings):
        self.knowledge = know(triples)
        self.starts = starts_of(self.knowledge, most)
        self.split_of = split_of
        self.asked, self.told = [], []
        self.refused = refused
        self.drawn = draw_graphs(
            self.knowledge, self.starts, split_of, lambda category, split: limit, self.refuse,
            tell=lambda *said: self.told.append(said), **settings,
        )  # fmt: skip

    def refuse(self, partial):
        self.asked.append(partial.graph_id)
        return "refused" if seed_of(partial.graph_id) % 10 < self.refused else None

    @property
    def kept(self):
        return [p for own in self.drawn.graphs.values() for p in own]

    @property
    def candidates(self):
        """Ids of all graphs that were made."""
        return [*self.asked, *(graph_id for reason, graph_id in self.told if reason == SHORT)]


def solve(partial, triples):
    """What answers each node, from the triples alone.

    (node, subjects of its facts, what its question says of a root: objects or named subjects,
    the only answer)
    """
    by_id = {f"{s}{r}{o}": (s, r, o) for s, r, o in triples}
    answer = {}
    for node in partial.nodes:
        said = [by_id[name] for name in node.fact_id.split("&")]
        backward = not node.prerequisites and node.answers == (said[0][0].upper(),)
        if backward:
            found = [{s for s, r, o in triples if (r, o) == fact[1:]} for fact in said]
        else:
            if node.prerequisites:
                assert [s for s, _, _ in said] == [answer[p] for p in node.prerequisites]
            found = [{o for s, r, o in triples if (s, r) == fact[:2]} for fact in said]
        common = set.intersection(*found)
        assert len(common) == 1, f"{node.question} has answers {common}"
        if len(said) > 1:  # neither half is enough
            assert all(len(own) > 1 for own in found)
        (answer[node.node_id],) = common
        assert node.answers == (answer[node.node_id].upper(),)
        roots = [] if node.prerequisites else [o if backward else s for s, _, o in said]
        yield node, {s for s, _, _ in said}, roots, answer[node.node_id]


def is_shortcut(partial, triples):
    """An entity that is met twice, or leads to the answer and is not needed for the last."""
    solved = list(solve(partial, triples))
    _, needed, _, answer = solved[-1]
    met = [entity for _, _, roots, found in solved for entity in (*roots, found)]
    links = {(s, o) for s, _, o in triples}
    twice = max(Counter(met).values()) > 1
    return twice or any((e, answer) in links for e in met if e not in needed)


def test_the_worlds_carry_everything():
    """What the properties below are checked on: all ten categories occur often."""
    counts = Counter()
    for seed in range(40):
        made = Draw(random_world(seed, 10), refused=2)
        counts.update({category for category, _ in made.drawn.graphs})
        counts.update({reason for reason, _ in made.told})
    assert counts.keys() == {*CATEGORIES, SHORT, "refused"}
    assert min(counts.values()) >= 5


@SETTINGS
@given(worlds())
def test_every_graph_is_sound(triples):
    made = Draw(triples, refused=2)
    seen = set()
    for (category, split), partials in made.drawn.graphs.items():
        assert [p.graph_id for p in partials] == sorted(p.graph_id for p in partials)
        for partial in partials:
            item = Item(
                partial.graph_id, partial.question, partial.nodes[-1].answers, category,
                partial.nodes, split, roots="named" if partial.named else "described",
            )  # fmt: skip
            check_item(item, "here")
            places = {n.node_id: place for place, n in enumerate(partial.nodes)}
            assert list(places) == [f"v{k + 1}" for k in range(len(places))]
            assert all(
                places[p] < places[n.node_id] for n in partial.nodes for p in n.prerequisites
            )
            assert category_of(partial.nodes) == category in CATEGORIES
            assert {parity(s) for s in partial.statements} == {split}
            *_, (*_, answer) = solve(partial, triples)
            assert answer == partial.entity
            assert not is_shortcut(partial, triples)
            assert made.refuse(partial) is None
            assert partial.graph_id not in seen
            seen.add(partial.graph_id)
            facts = [name for n in partial.nodes for name in n.fact_id.split("&")]
            assert facts == [s.statement_id for s in partial.statements]


@SETTINGS
@given(worlds(), st.sampled_from([None, 0, 1, 3]), st.integers(1, 3), st.sampled_from([0.3, 1.0]))
def test_what_is_made_is_kept_or_counted(triples, limit, spare, answer_share):
    made = Draw(triples, limit=limit, refused=3, spare=spare, answer_share=answer_share)
    excluded = Counter(made.drawn.excluded)
    over, apart = excluded.pop(OVER, 0), excluded.pop(APART, 0)
    assert apart >= 0 and over >= 0 and (limit is not None or over == 0)
    assert len(made.candidates) == len(set(made.candidates))
    assert len(made.candidates) == len(made.kept) + over + excluded.total()
    told = Counter(reason for reason, _ in made.told)
    assert told == +excluded
    assert set(told) <= {SHORT, "refused"}
    for reason, ids in made.drawn.examples.items():
        assert ids == [graph_id for said, graph_id in made.told if said == reason][:10]
    kept = {p.graph_id for p in made.kept}
    assert kept <= set(made.asked) and not kept & {graph_id for _, graph_id in made.told}


@SETTINGS
@given(worlds())
def test_what_is_called_a_shortcut_is_one(triples):
    made = Draw(triples, fan=ALL)
    told = {graph_id for reason, graph_id in made.told if reason == SHORT}
    for partial in _chains(made):
        assert is_shortcut(partial, triples) == (partial.graph_id in told)


def _chains(made):
    """All chains and wide chains of up to four nodes, one step after the other."""
    knowledge = made.knowledge
    for first, most in ((made.starts.singles, 4), (made.starts.conjunctive, 3)):
        level = [p for p in first if len({made.split_of(s) for s in p.statements}) == 1]
        for _ in range(most):
            yield from level
            level = [
                step(p, s, PROPERTIES[s.relation])
                for p in level
                for s in (knowledge.only(p.entity, r) for r in knowledge.relations(p.entity))
                if s is not None and s not in p.statements
                and made.split_of(s) == made.split_of(p.statements[0])
            ]  # fmt: skip


@SETTINGS
@given(worlds())
def test_no_chain_is_missed(triples):
    made = Draw(triples, fan=ALL)
    expected = Counter(p.graph_id for p in _chains(made))
    assert max(expected.values(), default=1) == 1
    assert {i for i in made.candidates if "|" not in i} == set(expected)


@SETTINGS
@given(worlds())
def test_every_pair_that_graphs_lead_to_is_joined_once(triples):
    made = Draw(triples, split_of=lambda statement: "train", fan=ALL)
    ends = Counter(p.entity for p in made.starts.singles)
    expected = {
        f"{first.statement_id}&{other.statement_id}"
        for first, other, a, b in shared_pairs(made.knowledge)
        if ends[a] and ends[b]
    }
    joined = [i.split(")>") for i in made.candidates if "|" in i]
    branches = [branch for left, _ in joined for branch in left.removeprefix("(").split(" | ")]
    assert max((branch.count(">") for branch in branches), default=0) <= 1
    three = [after for left, after in joined if ">" not in left + after]
    assert sorted(three) == sorted(expected)
    for left, after in joined:  # all others are those, one step longer before or after
        assert (left + after).count(">") <= 1
        first, _, other = after.split(">")[0].partition("&")
        assert after.split(">")[0] in expected or ">" in left and f"{other}&{first}" in expected


@SETTINGS
@given(worlds(), st.integers(1, 2))
def test_the_fan_bounds_starts_and_continuations(triples, fan):
    made = Draw(triples, fan=fan)
    unjoined = {i for i in made.candidates if "|" not in i}
    assert unjoined <= set(Draw(triples, fan=ALL).candidates)
    entity = {p.graph_id: p.entity for p in made.starts.singles}
    two = [i for i in unjoined if i.count(">") == 1]
    starts = {i.split(">")[0] for i in two if "&" not in i}
    assert max(Counter(entity[s] for s in starts).values(), default=0) <= fan
    wide = Counter(i.split(">")[0] for i in two if "&" in i)
    assert max(wide.values(), default=0) <= fan


@SETTINGS
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(triples, random):
    one = Draw(triples, limit=3)
    shuffled = list(triples)
    random.shuffle(shuffled)
    other = Draw(shuffled, limit=3)
    assert one.drawn.graphs == other.drawn.graphs and one.drawn.excluded == other.drawn.excluded
    random.shuffle(one.starts.singles), random.shuffle(one.starts.conjunctive)
    again = draw_graphs(one.knowledge, one.starts, parity, lambda *key: 3, lambda partial: None)
    assert again.graphs == one.drawn.graphs


@SETTINGS
@given(worlds(), st.integers(0, 4))
def test_a_limit_keeps_the_first_by_hash(triples, limit):
    free = Draw(triples).drawn.graphs
    bounded = Draw(triples, limit=limit).drawn.graphs
    assert free.keys() == bounded.keys()
    for key, partials in free.items():
        first = sorted(partials, key=lambda p: seed_of("graph", p.graph_id))[:limit]
        assert bounded[key] == sorted(first, key=lambda p: p.graph_id)


@SETTINGS
@given(worlds(), st.integers(1, 6), st.sampled_from([0.2, 0.34, 0.5]), st.sampled_from([1, 2, ALL]))
def test_no_answer_has_more_than_its_share(triples, limit, share_, spare):
    free = Draw(triples).drawn.graphs
    varied = Draw(triples, limit=limit, answer_share=share_, spare=spare).drawn.graphs
    bound = max(1, int(share_ * limit))
    for key, partials in free.items():
        held = sorted(partials, key=lambda p: seed_of("graph", p.graph_id))[: spare * limit]
        expected, answers = [], Counter()
        for partial in held:
            answers[partial.entity] += 1
            if answers[partial.entity] <= bound and len(expected) < limit:
                expected.append(partial)
        assert sorted(p.graph_id for p in expected) == [p.graph_id for p in varied[key]]


def test_a_share_binds_only_where_there_is_a_limit():
    triples = [(s, "f", "x") for s in "abcd"]
    assert len(Draw(triples, answer_share=0.1, split_of=lambda s: "train").kept) == 4
    bounded = Draw(triples, answer_share=0.1, limit=4, split_of=lambda s: "train")
    assert len(bounded.kept) == 1 and bounded.drawn.excluded[OVER] == 3


class TestPairs:
    @SETTINGS
    @given(worlds())
    def test_shared_pairs_against_brute_force(self, triples):
        objects = lambda s, r: {o for t, q, o in triples if (t, q) == (s, r)}  # noqa: E731
        expected = set()
        for relation in "fghmn":
            for a, b in combinations(ENTITIES, 2):
                common = objects(a, relation) & objects(b, relation)
                several = len(objects(a, relation)) > 1 and len(objects(b, relation)) > 1
                if several and len(common) == 1 and relation in "mn":
                    (obj,) = common
                    expected.add((f"{a}{relation}{obj}", f"{b}{relation}{obj}", a, b))
        found = list(shared_pairs(know(triples)))
        assert {(x.statement_id, y.statement_id, a, b) for x, y, a, b in found} == expected
        assert len(found) == len(expected)

    @SETTINGS
    @given(worlds(), st.integers(2, 5))
    def test_twin_descriptions_against_brute_force(self, triples, most):
        holders = lambda r, o: {s for s, q, p in triples if (q, p) == (r, o)}  # noqa: E731
        expected = set()
        for one, two in combinations(triples, 2):
            if one[0] != two[0] or one[1] == two[1] or {one[1], two[1]} & set("mn"):
                continue
            own = holders(*one[1:]), holders(*two[1:])
            if own[0] & own[1] == {one[0]} and all(2 <= len(h) <= most for h in own):
                expected.add(frozenset(("".join(one), "".join(two))))
        found = list(twin_descriptions(know(triples), most))
        assert {frozenset((x.statement_id, y.statement_id)) for x, y in found} == expected
        assert len(found) == len(expected)

    @SETTINGS
    @given(worlds(), st.integers(2, 4))
    def test_bounded_holders(self, triples, most):
        knowledge = know(triples)
        free = list(shared_pairs(knowledge))
        bounded = list(shared_pairs(knowledge, most))
        assert all(pair in free for pair in bounded)
        by_object = {}
        for first, _, a, b in bounded:
            by_object.setdefault((first.relation, first.object), set()).update((a, b))
        assert all(len(own) <= most for own in by_object.values())
        assert list(shared_pairs(knowledge, len(ENTITIES))) == free

    def test_by_hand(self):
        """a and b share x alone; a and c share x and y; d has one object only."""
        triples = [(s, "m", o) for s, own in
                   (("a", "xy"), ("b", "xz"), ("c", "xyz"), ("d", "x")) for o in own]  # fmt: skip
        pairs = [(x.statement_id, y.statement_id) for x, y, _, _ in shared_pairs(know(triples))]
        assert pairs == [("amx", "bmx")]

    def test_descriptions_by_hand(self):
        """a: f and h each fit a and another; b and c share one of the two."""
        triples = [("a", "f", "x"), ("a", "h", "y"), ("b", "f", "x"), ("c", "h", "y")]
        (pair,) = twin_descriptions(know(triples), 2)
        assert [s.statement_id for s in pair] == ["afx", "ahy"]
        assert list(twin_descriptions(know([*triples, ("d", "f", "x")]), 2)) == []
        assert len(list(twin_descriptions(know([*triples, ("d", "f", "x")]), 3))) == 1
        assert list(twin_descriptions(know([*triples, ("b", "h", "y")]), 4)) == []
        assert list(twin_descriptions(know(triples[:3]), 4)) == []  # y fits a alone


class TestByHand:
    """x describes a; f leads on from a over b and c to d."""

    TRIPLES = [("a", "h", "x"), ("a", "f", "b"), ("b", "f", "c"), ("c", "f", "d")]

    def graphs(self, *more, **changes):
        drawn = Draw([*self.TRIPLES, *more], split_of=lambda s: "train", **changes).drawn
        return {c: [p.graph_id for p in own] for (c, _), own in drawn.graphs.items()}, drawn

    def test_chains(self):
        graphs, drawn = self.graphs()
        assert graphs == {
            "1-hop, single": ["^afb", "^ahx", "^bfc", "^cfd", "afb", "ahx", "bfc", "cfd"],
            "2-hop, chain": ["^afb>ahx", "^ahx>afb", "afb>bfc", "bfc>cfd"],
            "3-hop-1, chain": ["^ahx>afb>bfc", "afb>bfc>cfd"],
            "4-hop-1, chain": ["^ahx>afb>bfc>cfd"],
        }
        assert +drawn.excluded == Counter()

    def test_a_shortcut(self):
        """a also leads to c: whatever reaches c over b is cut short; so is c over a from b."""
        graphs, drawn = self.graphs(("a", "g", "c"))
        assert sorted(drawn.examples[SHORT]) == [
            "^afb>agc",  # the question names b, which leads to c
            "^agc>afb>bfc", "^agc>afb>bfc>cfd",  # the question names c
            "^ahx>afb>bfc", "afb>bfc",
        ]  # fmt: skip
        assert "^ahx>agc>cfd" in graphs["3-hop-1, chain"]
        assert "afb>bfc>cfd" in graphs["3-hop-1, chain"]  # d itself has no second way

    def test_a_step_within_one_paragraph_is_no_hop(self):
        graphs, _ = self.graphs(("a", "g", "y"))
        assert {"^afb>agy", "^agy>afb"} <= set(graphs["1-hop, single"])
        assert {"^agy>afb>bfc", "^ahx>agy"} <= {*graphs["2-hop, chain"]}

    def test_pages_of_different_splits_do_not_meet(self):
        split = lambda s: "test" if s.subject == "b" else "train"  # noqa: E731
        drawn = Draw(self.TRIPLES, split_of=split).drawn
        ids = {key: [p.graph_id for p in own] for key, own in drawn.graphs.items()}
        assert ids == {
            ("1-hop, single", "train"): ["^afb", "^ahx", "^cfd", "afb", "ahx", "cfd"],
            ("1-hop, single", "test"): ["^bfc", "bfc"],
            ("2-hop, chain", "train"): ["^afb>ahx", "^ahx>afb"],
        }
        # afb>bfc, bfc>cfd and ^ahx>afb>bfc were tried
        assert +drawn.excluded == Counter({APART: 3})

    def test_joins_within_every_split(self):
        """Graphs of other splits that end in a take no place of those of its own split."""
        shared = [(s, "m", o) for s, own in (("a", "qz"), ("e", "qy")) for o in own]
        own = [("a", "h", "x"), ("e", "h", "s")]
        others = [(k, "f", "a") for k in "bcdfghij"]  # named starts of these lead to a
        split = lambda s: "train" if s.subject in "ae" else "test"  # noqa: E731
        for more in ([], others):
            drawn = Draw([*own, *shared, *more], split_of=split, fan=1).drawn
            (made,) = drawn.graphs["3-hop-2, fan-in", "train"]
            assert made.graph_id == "(^ahx | ^ehs)>amq&emq"
        apart = Draw([*own, *shared], split_of=lambda s: s.subject).drawn
        assert {category for category, _ in apart.graphs} == {"1-hop, single"}

    def test_joins_and_what_follows(self):
        """a and e share q; q's f is r; s describes e, and e is the f of k."""
        more = [(s, "m", o) for s, own in (("a", "qz"), ("e", "qy")) for o in own]
        more += [("q", "f", "r"), ("e", "h", "s"), ("k", "f", "e"), ("k", "h", "t")]
        graphs, _ = self.graphs(*more, fan=ALL)
        assert graphs["1-hop, conjunctive"] == ["amq&emq"]
        assert graphs["2-hop, wide"] == ["amq&emq>qfr"]
        (fan_in,) = graphs["3-hop-2, fan-in"]
        left, right = fan_in.removeprefix("(").removesuffix(")>amq&emq").split(" | ")
        assert left in ("^afb", "^ahx") and right in ("^ehs", "kfe")
        assert graphs["4-hop-3, fan-in"] == [f"{fan_in}>qfr"]
        # the branch of two steps is left, whichever of the two subjects it ends in
        assert graphs["4-hop-2, fan-in"] == [f"(^kht>kfe | {left})>emq&amq"]

    def test_descriptions_that_need_two(self):
        """x fits a and e, b is the f of a and k: together they fit a alone."""
        graphs, _ = self.graphs(("e", "h", "x"), ("k", "f", "b"), ("a", "g", "y"))
        assert graphs["1-hop, conjunctive"] == ["^afb&ahx", "^afb&ahx>agy"]  # g is told beside f
        assert "2-hop, wide" not in graphs
        graphs, _ = self.graphs(("e", "h", "x"), ("k", "f", "b"), ("a", "n", "y"), ("y", "h", "z"))
        assert graphs["2-hop, wide"] == ["^afb&ahx>any"]
        assert graphs["3-hop-1, wide"] == ["^afb&ahx>any>yhz"]


class TestExclusion:
    TRIPLES = [("a", "h", "x"), ("a", "f", "b"), ("b", "f", "c")]

    def test_a_graph_of_no_category_is_counted(self):
        """One passage says of k and of e what describes them: it is needed by both branches."""
        triples = [(s, "m", o) for s, own in (("a", "qz"), ("e", "qy")) for o in own]
        triples += [("k", "h", "t"), ("k", "f", "a"), ("e", "h", "s")]
        both = Evidence("p", 1, ((0, 1),))
        statements = [say(*t) for t in triples]
        statements = [replace(s, evidence=both) if s.relation == "h" else s for s in statements]
        knowledge, told = Knowledge(statements, PROPERTIES), []
        drawn = draw_graphs(
            knowledge, starts_of(knowledge), lambda s: "train", lambda *key: None,
            lambda partial: None, tell=lambda *said: told.append(said),
        )  # fmt: skip
        assert told == [("no category", "(^kht>kfa | ^ehs)>amq&emq")]
        assert +drawn.excluded == Counter({"no category": 1})

    def test_reasons_are_counted_with_their_first_ids(self):
        made = Draw(self.TRIPLES, refused=10, split_of=lambda s: "train")
        assert made.kept == [] and made.drawn.graphs == {}
        assert made.drawn.excluded["refused"] == len(made.asked) == len(made.told) == 10
        many = Draw([(s, "f", o) for s, o in zip("abcdefg", "tuvwxyz")], refused=10)
        assert many.drawn.excluded["refused"] == 14
        assert many.drawn.examples == {"refused": many.asked[:10]}
