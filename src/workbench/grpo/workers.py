"""Data-parallel workers as ``accelerate launch`` starts them; one worker without it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Workers:
    """This process among the workers.

    Every worker draws the same questions, rolls out its share of them, whole groups at a
    time, and sums its gradients with the others'; weights and optimiser state stay equal.
    """

    def __init__(self, device: torch.device | str = "cpu"):
        from accelerate import PartialState

        state = PartialState(cpu=torch.device(device).type == "cpu")
        self.rank, self.size = state.process_index, state.num_processes

    @property
    def first(self) -> bool:
        """Whether this worker writes the files."""
        return self.rank == 0

    def share(self, rows: Sequence) -> list:
        """This worker's part of a list that all workers hold."""
        return list(rows[self.rank :: self.size])

    def total(self, value: float) -> float:
        """Sum of a number over workers."""
        return float(sum(self.gather([value])))

    def gather(self, rows: list) -> list:
        """All workers' lists of picklable rows joined in rank order, on every worker."""
        if self.size == 1:
            return rows
        from accelerate.utils import gather_object

        return gather_object(rows)

    def sum_gradients(self, parameters: Sequence[Tensor]) -> None:
        """Replace every ``.grad`` by its sum over workers."""
        if self.size == 1:
            return
        from accelerate.utils import reduce

        flat = torch.cat([p.grad.reshape(-1) for p in parameters])
        flat = reduce(flat, reduction="sum")
        for parameter, grad in zip(parameters, flat.split([p.numel() for p in parameters])):
            parameter.grad = grad.view_as(parameter).clone()

    def wait(self) -> None:
        """Wait until all workers are here."""
        if self.size > 1:
            torch.distributed.barrier()
