"""Faults in params are told with file, line, field and remedy."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.config import Settings
from workbench.errors import WorkbenchError
from workbench.params import dump_profile, load_profile
from workbench.params.validate import validate
from workbench.params.yamlfile import parse_override, parse_yaml


class Inner(Settings):
    rate: float = 0.1
    steps: int = 3
    sizes: tuple[int, ...] = (1,)


class Outer(Settings):
    name: str
    inner: Inner = Inner()
    maybe: Inner | None = None


def fault(text: str) -> str:
    with pytest.raises(WorkbenchError) as caught:
        validate(Outer, parse_yaml(text, "p.yaml"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "where", "say"),
    [
        ("name: a\ninner:\n  rat: 1.0\n", "p.yaml:3: inner.rat", "did you mean 'rate'?"),
        ("name: a\nmaybe:\n  step: 1\n", "p.yaml:3: maybe.step", "did you mean 'steps'?"),
        ("name: a\nzzz: 1\n", "p.yaml:2: zzz", "known keys: name, inner, maybe"),
        ("name: a\ninner:\n  rate: 1e-5\n", "p.yaml:3: inner.rate", "write 1.0e-5"),
        ("name: a\ninner:\n  rate: 3e4\n", "p.yaml:3: inner.rate", "write 3.0e+4"),
        ("name: a\ninner: {steps: 1.5}\n", "p.yaml:2: inner.steps", "integer"),
        ("name: a\ninner: {steps: '3'}\n", "p.yaml:2: inner.steps", "integer, not '3'"),
        ("name: a\ninner: {steps: true}\n", "p.yaml:2: inner.steps", "integer"),
        ("name: a\ninner:\n  sizes:\n  - 1\n  - x\n", "p.yaml:5: inner.sizes.1", "integer"),
        ("inner: {steps: 1}\n", "p.yaml: name", "missing"),
        ("name: a\nname: b\n", "p.yaml:2", "written twice"),
        ("name: [a\n", "p.yaml:2", "not YAML"),
        ("- a\n", "p.yaml", "key: value"),
        ("1: a\n", "p.yaml:1", "not text"),
    ],
)
def test_fault_names_place_and_remedy(text, where, say):
    message = fault(text)
    assert message.startswith(where + ":"), message
    assert say in message


def test_all_faults_are_told_at_once():
    message = fault("name: 3\ninner:\n  rate: 1e-5\n  foo: 1\n")
    for part in ("p.yaml:1: name", "p.yaml:3: inner.rate", "p.yaml:4: inner.foo"):
        assert part in message


def test_good_values_are_not_converted():
    outer = validate(Outer, parse_yaml("name: a\ninner: {rate: 1.0e-5, sizes: [4, 5]}\n", "p"))
    assert outer.inner == Inner(rate=1e-5, sizes=(4, 5))
    assert validate(Outer, parse_yaml("name: 2024-01-01\n", "p")).name == "2024-01-01"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_extends_merges_and_keeps_places(tmp_path):
    write(
        tmp_path,
        base="extends: smoke\ndescription: base\ncorpus:\n  chunks: {words: 50}\n",
        child="extends: base\nseeds: [4, 5]\ncorpus:\n  chunks:\n    boundary: word\n",
        broken="extends: child\ncorpus:\n  chunks:\n    wordz: 3\n",
    )
    child = load_profile(tmp_path / "child.yaml")
    assert (child.name, child.description, child.seeds) == ("child", "base", (4, 5))
    assert (child.corpus.chunks.words, child.corpus.chunks.boundary) == (50, "word")
    with pytest.raises(WorkbenchError, match=r"broken\.yaml:4: corpus\.chunks\.wordz"):
        load_profile(tmp_path / "broken.yaml")


def test_fault_in_a_parent_names_the_parent(tmp_path):
    write(tmp_path, base="extends: smoke\nseeds: [x]\n", child="extends: base\n")
    with pytest.raises(WorkbenchError, match=r"base\.yaml:2: seeds\.0"):
        load_profile(tmp_path / "child.yaml")


def test_circle_of_extends(tmp_path):
    write(tmp_path, a="extends: b\n", b="extends: c\n", c="extends: a\n")
    with pytest.raises(WorkbenchError, match="a -> b -> c -> a"):
        load_profile(tmp_path / "a.yaml")


def test_missing_profiles(tmp_path):
    with pytest.raises(WorkbenchError, match="no profile 'smok'.*smoke"):
        load_profile("smok")
    with pytest.raises(WorkbenchError, match="no such profile"):
        load_profile(tmp_path / "none.yaml")
    write(tmp_path, child="extends: nobody\n")
    with pytest.raises(WorkbenchError, match=r"child\.yaml: no profile 'nobody'"):
        load_profile(tmp_path / "child.yaml")
    write(tmp_path, child="extends: [a, b]\n")
    with pytest.raises(WorkbenchError, match=r"child\.yaml:1: 'extends' names one profile"):
        load_profile(tmp_path / "child.yaml")


def test_overrides_in_both_spellings():
    as_text = load_profile("smoke", ["corpus.chunks.words=7", "seeds=[3, 4]"])
    as_mapping = load_profile("smoke", {"corpus.chunks.words": 7, "seeds": [3, 4]})
    assert as_text == as_mapping
    assert (as_text.corpus.chunks.words, as_text.seeds) == (7, (3, 4))


@pytest.mark.parametrize(
    ("override", "say"),
    [
        ("corpus.chunks.wordz=7", "override corpus.chunks.wordz=7: corpus.chunks.wordz"),
        ("corpus.chunk.words=7", "did you mean 'chunks'?"),
        ("questions.unexposed=1e-5", "write 1.0e-5"),
        ("corpus", "an override is 'key.key=value'"),
        ("corpus..words=1", "an override is 'key.key=value'"),
        ("seeds=[1", "not a YAML value"),
        ("seeds=[]", "at least 1"),
    ],
)
def test_faulty_overrides(override, say):
    with pytest.raises(WorkbenchError) as caught:
        load_profile("smoke", [override])
    assert say in str(caught.value)


def test_resolved_profile_reads_back(tmp_path):
    profile = load_profile("tiny", ["seeds=[9]"])
    (tmp_path / "resolved.yaml").write_text(dump_profile(profile))
    assert load_profile(tmp_path / "resolved.yaml") == profile


@given(st.integers(1, 1000), st.integers(2, 1000))
def test_digest_depends_on_its_parts_only(words, candidates):
    profile = load_profile(
        "smoke", {"corpus.chunks.words": words, "questions.candidates": candidates}
    )
    base = load_profile("smoke", {"corpus.chunks.words": 30, "questions.candidates": 12})
    assert (profile.digest("corpus") == base.digest("corpus")) == (words == 30)
    assert (profile.digest("corpus.chunks") == base.digest("corpus.chunks")) == (words == 30)
    assert profile.digest("seeds") == base.digest("seeds")
    assert (profile.digest("questions") == base.digest("questions")) == (candidates == 12)


def test_digest_does_not_depend_on_the_order_of_keys(tmp_path):
    write(
        tmp_path,
        a="extends: smoke\nname: x\ncorpus: {source: embedded, chunks: {words: 9}}\n",
        b="name: x\ncorpus: {chunks: {words: 9}, source: embedded}\nextends: smoke\n",
    )
    one, two = (load_profile(tmp_path / f"{n}.yaml") for n in "ab")
    assert one.digest("corpus", "questions") == two.digest("corpus", "questions")


def test_digest_is_the_same_in_another_process():
    import subprocess
    import sys

    code = "from workbench.params import load_profile as l; print(l('smoke').digest('corpus'))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip() == load_profile("smoke").digest("corpus")


def test_override_values_are_yaml():
    assert parse_override("a.b={c: [1, 2.5, x]}").data == {"a": {"b": {"c": [1, 2.5, "x"]}}}


@pytest.mark.parametrize(
    ("content", "say"),
    [
        (b"extends: smoke\nseeds: [\xff]\n", "bad.yaml:2: not UTF-8 text"),
        (b"extends: smoke\nseeds: [1, \x00]\n", "bad.yaml:2: not YAML"),
        (b"a: &a [*a]\n", "bad.yaml: a value contains itself"),
        (
            b"extends: smoke\ngrpo: {optimiser: {lr: .inf}}\n",
            "bad.yaml:2: grpo.optimiser.lr: .*finite",
        ),
        (
            b"extends: smoke\nseeds: [-1]\n",
            "bad.yaml:2: seeds.0: .*greater than or equal to 0, not -1",
        ),
        (b"extends: smoke\nseeds: [99999999999999999999]\n", "bad.yaml:2: seeds.0: .*less than"),
        (b"extends: smoke\nname: ..\n", "bad.yaml:2: name: String should match"),
        (b"extends: smoke\nconditions: [x/oo]\n", "bad.yaml:2: conditions.0: String should match"),
    ],
)
def test_odd_files_are_told_by_line(tmp_path, content, say):
    (tmp_path / "bad.yaml").write_bytes(content)
    with pytest.raises(WorkbenchError, match=say):
        load_profile(tmp_path / "bad.yaml")


def test_an_override_inside_what_is_no_mapping_is_told_by_its_own_name():
    with pytest.raises(WorkbenchError, match="^override seeds.x=3: seeds: "):
        load_profile("smoke", ["seeds.x=3"])
    with pytest.raises(WorkbenchError, match="^override grpo.steps.x=3: grpo.steps: "):
        load_profile("smoke", ["grpo.steps.x=3"])
