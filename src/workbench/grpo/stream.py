"""Which questions a step trains on: a permutation per epoch, named by seed and epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import WorkbenchError
from ..seeding import generator


@dataclass(frozen=True, slots=True)
class QuestionStream:
    """``rows(step)`` is a function of the step, so a resumed run needs no saved position.

    A batch never straddles two epochs, because then it could hold a question twice and make
    one group of two; the ``questions % per_step`` left over each epoch are other ones each
    time.

    Raises
    ------
    WorkbenchError : fewer questions than one step asks for.
    """

    questions: int
    per_step: int
    seed: int

    def __post_init__(self) -> None:
        if self.questions < self.per_step:
            raise WorkbenchError(
                f"{self.questions} training questions, but a step draws {self.per_step}",
                where="grpo.questions_per_step",
                fix="lower it or give more questions",
            )

    def rows(self, step: int) -> np.ndarray:
        """Rows int64 [per_step] of step ``step`` (from 0), in batch order."""
        epoch, place = divmod(step, self.questions // self.per_step)
        order = generator("questions", self.seed, epoch).permutation(self.questions)
        return order[place * self.per_step : (place + 1) * self.per_step]
