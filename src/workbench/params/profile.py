"""A profile: every number of a run, composed from the settings of the rooms."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from ..agent.config import AgentConfig
from ..config import Settings
from ..corpus.source import CorpusConfig
from ..engines.base import Choice, Sampling
from ..grpo.config import GRPOConfig
from ..inference.bootstrap import BootstrapConfig
from ..policy.config import PolicyConfig
from ..questions.build import QuestionConfig
from ..readouts.config import CalibrationConfig
from ..retrieval.config import RetrievalConfig
from ..runs import stable_hash

FolderName = Annotated[str, Field(pattern=r"^[\w-]+$")]  # a condition's runs are in a folder of it
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class MachineConfig(Settings):
    """Where and in which arithmetic a profile runs.

    ``dtype`` is the engines' arithmetic; "auto" is what the machine is fastest in, so that
    results differ a little between machines.  ``threads`` are those of one notebook; several
    notebooks run side by side.  With ``offline`` nothing is asked of a model hub.
    """

    device: str = Field(default="cpu", pattern=r"^(cpu|mps|cuda(:\d+)?)$")
    dtype: Choice = "float32"
    threads: int = Field(default=1, ge=1)
    offline: bool = True


class EvaluationParams(Settings):
    """Sizes of the measurements.

    ``questions`` of the test split are asked (None: all; the same ones for every policy),
    once greedily and ``samples`` times at the profile's sampling.  ``curve_questions`` of the
    validation split are asked every ``grpo.eval_every`` training steps.
    """

    questions: int | None = Field(default=None, ge=1)
    samples: int = Field(default=1, ge=1)
    curve_questions: int = Field(default=100, ge=1)


class VotingParams(Settings):
    """``rollouts`` sampled and voted per question (N of S2), over ``questions`` test questions.

    ``conditions`` are the trained policies that vote, beside the base policy (None: all).
    """

    conditions: tuple[str, ...] | None = None
    rollouts: int = Field(default=8, ge=2)
    questions: int | None = Field(default=None, ge=1)


class Profile(Settings):
    """One file of params/profiles, resolved.

    ``stages`` are the notebooks that ``workbench reproduce`` runs, ``conditions`` the entries
    of params/conditions that are trained and compared, ``seeds`` the training runs of each, and
    ``seeds_of`` those of conditions that are trained with some of them only.
    ``training_questions`` of the train split are trained on (None: the whole split as it is), in
    equal parts from all strata of ``evaluation.selection`` or as ``training_shares`` say.
    """

    name: str = Field(pattern=r"^\w[\w.-]*$")
    description: str
    stages: tuple[str, ...] = Field(min_length=1)
    conditions: tuple[FolderName, ...] = Field(min_length=1)
    seeds: tuple[Seed, ...] = Field(min_length=1)
    seeds_of: dict[str, tuple[Seed, ...]] = {}
    machine: MachineConfig = MachineConfig()
    corpus: CorpusConfig = CorpusConfig()
    retrieval: RetrievalConfig = RetrievalConfig()
    questions: QuestionConfig = QuestionConfig()
    policy: PolicyConfig = PolicyConfig()
    agent: AgentConfig = AgentConfig()
    sampling: Sampling = Sampling()
    training_questions: int | None = Field(default=None, ge=1)
    training_shares: dict[str, float] | None = None
    calibration: CalibrationConfig = CalibrationConfig()
    grpo: GRPOConfig
    evaluation: EvaluationParams = EvaluationParams()
    voting: VotingParams = VotingParams()
    bootstrap: BootstrapConfig = BootstrapConfig()

    @model_validator(mode="after")
    def _agree(self) -> Profile:
        for name in ("stages", "conditions", "seeds"):
            if len(set(getattr(self, name))) < len(getattr(self, name)):
                raise ValueError(f"{name} names something twice")
        if odd := sorted(set(self.voting.conditions or ()) - set(self.conditions)):
            raise ValueError(
                f"voting.conditions: {odd[0]!r} is not among the profile's conditions "
                "-- set both, e.g. conditions=[oo] and voting.conditions=[oo]"
            )
        if odd := sorted({"base", "closed_book"} & set(self.conditions)):
            raise ValueError(
                f"conditions: {odd[0]!r} names the untrained policy -- rename its file in "
                "params/conditions"
            )
        for name, seeds in self.seeds_of.items():
            if not seeds or len(set(seeds)) < len(seeds) or set(seeds) - set(self.seeds):
                raise ValueError(
                    f"seeds_of.{name} is {list(seeds)}, expected some of seeds, {list(self.seeds)} "
                    "-- set both, e.g. seeds=[0] and seeds_of={}"
                )
            if self.seeds[0] not in seeds:
                raise ValueError(
                    f"seeds_of.{name} lacks {self.seeds[0]}, the first seed, which votes and is "
                    "studied closely -- add it"
                )
        return self

    def of_condition(self, name: str) -> Profile:
        """The profile as the runs of one condition see it: with that condition's seeds."""
        seeds = self.seeds_of.get(name, self.seeds)
        return self.model_copy(update={"seeds": seeds, "seeds_of": {}})

    def dump(self, dotted: str) -> object:
        """The part at a dotted name (``"grpo"``, ``"policy.source"``) as JSON-able data."""
        value: object = self.model_dump(mode="json")
        for name in dotted.split("."):
            value = value[name]  # type: ignore[index]
        return value

    def digest(self, *parts: str) -> str:
        """Stable hash of some parts: what depends on these only changes when they do."""
        return stable_hash({part: self.dump(part) for part in parts})
