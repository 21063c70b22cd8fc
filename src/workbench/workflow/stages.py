"""The notebook graph: which notebook makes what, from which params and which other stages.

This table is the one declaration.  The Snakefile turns it into rules, ``execute`` checks a
run against it, and in a notebook ``open_run`` hands out exactly the params and inputs that
are declared here, so that a dependency cannot be used without being declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import WorkbenchError
from ..methods.registry import condition_names, load_condition, method_needs
from ..runs import project_root, runs_root, stable_hash
from .sources import notebook_sources

MAIN = "main"
UNTRAINED = "base"  # the run of the base policy, beside those of the conditions
# What a run depends on of the committed policy: not its card, its log or where it came from.
POLICY = ("data/policy/config.json", "data/policy/model.safetensors", "data/policy/token*.json")


@dataclass(frozen=True)
class Stage:
    """One notebook of the graph.

    Attributes
    ----------
    name : the stage's folder under runs/<profile>/.
    notebook : its file under notebooks/, without the suffix.
    parts : parts of the profile it uses (``"grpo"``, ``"evaluation.draws"``).
    upstream : stages whose outputs it reads.
    own : stages with one run per condition of which it reads the run of its own condition only.
    optional : stages that it reads where the profile runs them.
    wanted : stages that some methods need beside them (``NEEDS`` of the method's module), each
        with the parts of the profile that come along.
    files : committed files it reads, as globs from the project root.
    per_condition : one run per condition of the profile instead of one named "main".
    about : the condition that it studies; a profile that does not train it has no such run.
    untrained : beside them one run named "base", for the policy that no condition trained.
    resume : the notebook continues a killed run from its work folder.
    figures : it writes a folder ``figures`` that belongs in the report.
    commits : output folders that are committed, each with where: ``(("policy", "data/policy"),)``;
        ``{profile}`` in it is the profile's name.
    """

    name: str
    notebook: str
    parts: tuple[str, ...]
    upstream: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    wanted: tuple[tuple[str, tuple[str, ...]], ...] = ()
    files: tuple[str, ...] = ()
    per_condition: bool = False
    about: str = ""
    untrained: bool = False
    resume: bool = False
    figures: bool = False
    commits: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> Path:
        return project_root() / "notebooks" / f"{self.notebook}.ipynb"

    def keys(self, profile) -> tuple[str, ...]:
        """Names of its runs under a profile."""
        if not self.per_condition:
            return () if self.about and self.about not in profile.conditions else (MAIN,)
        return (*((UNTRAINED,) if self.untrained else ()), *profile.conditions)

    def conditions(self, profile, key: str) -> tuple[str, ...]:
        """The conditions that a run is about: its own, or all where it uses "conditions"."""
        if self.per_condition:
            return () if key == UNTRAINED else (key,)
        return tuple(profile.conditions) if "conditions" in self.parts else ()

    def seen_by(self, profile, key: str):
        """The profile as a run sees it: one of a condition with the seeds of that condition."""
        return profile.of_condition(key) if self.per_condition else profile

    def check_key(self, profile, key: str) -> None:
        """Raise unless the profile has this run."""
        if key not in self.keys(profile):
            raise WorkbenchError(
                f"the stage {self.name!r} has no run {key!r}",
                where=f"profile {profile.name}",
                fix=f"one of {', '.join(self.keys(profile)) or 'none'}"
                + (f"; it is about the condition {self.about!r}" if self.about else ""),
            )

    def params(self, profile, key: str) -> dict:
        """The resolved settings it depends on, JSON-able: its parts, and its condition."""
        seen = self.seen_by(profile, key)
        settings = {part: seen.dump(part) for part in self.parts_of(profile, key)}
        if self.per_condition:
            for name in self.conditions(profile, key):
                condition = load_condition(name)
                settings["condition"] = {
                    "method": condition.method, "settings": condition.settings,
                }  # fmt: skip
        return settings

    def settings_hash(self, profile, key: str) -> str:
        """Stable hash of ``params``."""
        return stable_hash(self.params(profile, key))

    def _wanted(self, profile, key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        if not self.wanted:
            return ()
        conditions = map(load_condition, self.conditions(profile, key))
        needs = {name for condition in conditions for name in method_needs(condition.method)}
        return tuple(entry for entry in self.wanted if entry[0] in needs)

    def parts_of(self, profile, key: str) -> tuple[str, ...]:
        """The parts of the profile that a run uses: ``parts``, and what methods bring."""
        return (*self.parts, *(part for _, ps in self._wanted(profile, key) for part in ps))

    def upstream_of(self, profile, key: str) -> tuple[str, ...]:
        """The stages that a run reads: ``upstream``, ``own``, ``optional`` ones that the profile
        runs, and what its methods need."""
        optional = (name for name in self.optional if name in profile.stages)
        wanted = (name for name, _ in self._wanted(profile, key))
        return (*self.upstream, *self.own, *optional, *wanted)

    def upstream_runs(self, profile, key: str) -> dict[str, Path]:
        """``"stage/key"`` -> run directory of everything it reads from other stages."""
        runs = {}
        for name in self.upstream_of(profile, key):
            keys = stage(name).keys(profile)
            for other in (k for k in keys if name not in self.own or k == key):
                runs[f"{name}/{other}"] = runs_root() / profile.name / name / other
        return runs

    def source_files(self, profile, key: str) -> list[Path]:
        """The package modules and committed files that its result depends on.

        Conditions name their methods, which no notebook imports: those of the run's conditions
        belong to it.
        """
        root = project_root()
        data = sorted(p for pattern in self.files for p in root.glob(pattern) if p.is_file())
        conditions = map(load_condition, self.conditions(profile, key))
        methods = {f"workbench.methods.{condition.method}" for condition in conditions}
        return [*notebook_sources(self.path, modules=methods), *data]

    def inputs(self, profile, key: str) -> dict[str, Path]:
        """Everything it reads, by name: the notebook, sources, data files, upstream runs."""
        root = project_root()
        files = [self.path, *self.source_files(profile, key)]
        named = {p.relative_to(root).as_posix(): p for p in files}
        return {**named, **self.upstream_runs(profile, key)}


STAGES: tuple[Stage, ...] = (
    Stage(
        "corpus",
        "01_corpus_and_index",
        parts=("corpus", "retrieval"),
        files=("data/factbook/*",),
    ),
    Stage(
        "questions",
        "02_questions",
        parts=("corpus", "retrieval", "questions"),
        upstream=("corpus",),
        files=("data/factbook/*",),
    ),
    Stage(
        "policy",
        "03_train_base_policy",
        parts=("corpus", "retrieval", "agent", "policy"),
        upstream=("corpus", "questions"),
        files=("data/factbook/*",),
        resume=True,
        commits=(("policy", "data/policy"),),
    ),
    Stage(
        "card",
        "04_base_policy_card",
        parts=(
            "retrieval", "agent", "machine", "bootstrap",
            "policy.source", "policy.closed_book_prompt", "policy.card",
        ),  # fmt: skip
        upstream=("corpus", "questions"),
        files=POLICY,
        figures=True,
    ),
    Stage(
        "agent",
        "05_agent_and_trajectories",
        parts=("retrieval", "agent", "machine", "evaluation.questions", "policy.source"),
        upstream=("corpus", "questions"),
        files=POLICY,
    ),
    Stage(
        "calibration",
        "06_calibration_probes",
        parts=(
            "retrieval", "agent", "machine", "bootstrap", "calibration", "training_shares",
            "policy.source", "policy.closed_book_prompt",
        ),  # fmt: skip
        upstream=("corpus", "questions"),
        files=POLICY,
        figures=True,
    ),
    Stage(
        "train",
        "07_grpo_training",
        parts=(
            "retrieval", "agent", "machine", "training_questions",
            "training_shares", "grpo", "seeds",
            "policy.source", "evaluation.curve_questions",
        ),  # fmt: skip
        upstream=("corpus", "questions"),
        wanted=(("calibration", ("calibration", "policy.closed_book_prompt")),),
        files=POLICY,
        per_condition=True,
        resume=True,
        figures=True,
    ),
    Stage(
        "predictions",
        "08_predictions",
        parts=(
            "retrieval", "agent", "machine", "sampling", "seeds",
            "policy.source", "policy.closed_book_prompt",
            "evaluation.questions", "evaluation.samples",
        ),  # fmt: skip
        upstream=("corpus", "questions"),
        own=("train",),
        files=POLICY,
        per_condition=True,
        untrained=True,
    ),
    Stage(
        "evaluation",
        "09_evaluation",
        parts=("seeds", "seeds_of", "conditions", "bootstrap", "policy.source", "machine"),
        upstream=("corpus", "questions", "train", "predictions"),
        wanted=(("calibration", ()),),
        files=POLICY,
        figures=True,
    ),
    Stage(
        "voting",
        "10_voting",
        parts=(
            "retrieval", "agent", "machine", "sampling", "seeds", "seeds_of", "conditions",
            "bootstrap", "policy.source", "voting",
        ),  # fmt: skip
        upstream=("corpus", "questions", "train"),
        files=POLICY,
        figures=True,
    ),
    Stage(
        "credit_view",
        "11_credit_made_visible",
        parts=("policy.source", "grpo.group_size"),
        upstream=("corpus", "questions", "voting"),
        files=(
            "data/policy/token*.json",
            "params/conditions/oo.yaml", "params/conditions/cov_scalar.yaml",
            "params/conditions/cov_local.yaml", "params/conditions/cov_permute.yaml",
        ),  # fmt: skip
        figures=True,
    ),
    Stage(
        "credit_study",
        "12_retrieval_credit",
        parts=(
            "corpus", "questions", "retrieval.encoder", "policy.source", "grpo", "seeds",
            "conditions", "bootstrap",
        ),  # fmt: skip
        upstream=("corpus", "questions", "train", "evaluation", "voting"),
        files=(
            "data/factbook/*", "src/workbench/reporting/published/**/*",
            "params/conditions/*.yaml",
        ),  # fmt: skip
        figures=True,
    ),
    Stage(
        "grounding",
        "13_grounding",
        parts=(
            "corpus", "questions.source", "agent", "machine", "sampling", "seeds", "bootstrap",
            "policy.source", "policy.closed_book_prompt",
        ),  # fmt: skip
        upstream=("questions",),
        own=("train", "predictions"),
        files=(*POLICY, "data/factbook/*"),
        per_condition=True,
        untrained=True,
    ),
    Stage(
        "search_g1_study",
        "14_search_g1",
        parts=(
            "retrieval", "agent", "machine", "sampling", "calibration", "corpus.source",
            "policy.source", "policy.closed_book_prompt", "grpo", "seeds", "seeds_of", "conditions",
            "bootstrap",
        ),  # fmt: skip
        upstream=(
            "corpus", "questions", "calibration", "train", "predictions", "evaluation",
            "grounding", "voting",
        ),  # fmt: skip
        files=(*POLICY, "src/workbench/reporting/published/**/*", "params/conditions/*.yaml"),
        about="search_g1",
        figures=True,
    ),
    Stage(
        "report",
        "15_tables_and_figures",
        parts=(
            "corpus.source", "retrieval.encoder", "policy.source",
            "grpo", "seeds", "conditions", "bootstrap",
        ),  # fmt: skip
        upstream=("card", "train", "evaluation", "voting"),
        optional=("credit_view", "credit_study", "search_g1_study"),
        files=("src/workbench/reporting/published/**/*", "params/conditions/*.yaml"),
        figures=True,
        commits=(("figures", "figures/{profile}"),),
    ),
)


def stage(name: str) -> Stage:
    """The stage of that name.

    Raises
    ------
    WorkbenchError
        there is none.
    """
    for candidate in STAGES:
        if candidate.name == name:
            return candidate
    known = ", ".join(s.name for s in STAGES)
    raise WorkbenchError(f"no stage {name!r}", where="workflow/stages.py", fix=f"one of {known}")


def check_profile(profile) -> None:
    """Refuse a profile that names a stage or a condition that does not exist or is at fault.

    Raises
    ------
    WorkbenchError
        naming the profile's key, and in a condition at fault its file, line and field.
    """
    for key, load in (("stages", stage), ("conditions", load_condition)):
        for name in getattr(profile, key):
            try:
                load(name)
            except WorkbenchError as error:
                found = f"{error.where}: {error.what}" if error.where else error.what
                raise WorkbenchError(
                    found, where=f"profile {profile.name}: {key}", fix=error.fix
                ) from None
    if odd := sorted(set(profile.seeds_of) - set(condition_names())):
        raise WorkbenchError(
            f"no condition {odd[0]!r}",
            where=f"profile {profile.name}: seeds_of",
            fix="a name under params/conditions",
        )
