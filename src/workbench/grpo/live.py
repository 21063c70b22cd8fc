"""Progress bar and live curves of a training run, as step callbacks for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .trainer import StepReport

CURVES = ("reward_mean", "searches", "direct", "entropy", "kl", "grad_norm")


class ProgressBar:
    """A tqdm bar over the steps with the reward beside it; ``TQDM_DISABLE=1`` hides it."""

    def __init__(self, description: str = "training"):
        self.description = description
        self._bar = None

    def __call__(self, report: StepReport) -> None:
        from tqdm.auto import tqdm

        if self._bar is None:
            self._bar = tqdm(
                total=report.steps, initial=report.step - 1, desc=self.description, unit="step"
            )
        self._bar.set_postfix(
            reward=f"{report.metrics['reward_mean']:.3f}",
            searches=f"{report.metrics['searches']:.2f}",
            refresh=False,
        )
        self._bar.update(report.step - self._bar.n)
        if report.step == report.steps:
            self._bar.close()


def draw_curves(rows: Sequence[dict], names: Sequence[str] = CURVES, figure=None):
    """One small panel per logged metric over the steps; names no row has are left out.

    ``rows`` are lines of ``read_log``.  Draws into ``figure`` or a new one, and returns it.
    """
    from matplotlib.figure import Figure

    shown = [name for name in names if any(name in row for row in rows)]
    columns = min(3, max(1, len(shown)))
    lines = max(1, -(-len(shown) // columns))
    if figure is None:
        figure = Figure(figsize=(3.2 * columns, 2.1 * lines), layout="constrained")
    figure.clear()
    for place, name in enumerate(shown, start=1):
        axes = figure.add_subplot(lines, columns, place)
        points = [(row["step"], row[name]) for row in rows if name in row]
        axes.plot(*zip(*points), linewidth=1.2)
        axes.set_title(name.replace("_", " "), fontsize=9)
        axes.set_xlabel("step", fontsize=8)
        axes.tick_params(labelsize=7)
    return figure


class LiveCurves:
    """Redraws ``draw_curves`` in one output cell every ``every`` steps and at the end."""

    def __init__(self, names: Sequence[str] = CURVES, every: int = 5):
        self.names, self.every = tuple(names), every
        self.rows: list[dict] = []
        self._handle = None

    def __call__(self, report: StepReport) -> None:
        self.rows.append({"step": report.step, **report.metrics})
        if report.step % self.every and report.step != report.steps:
            return
        from IPython.display import display

        figure = draw_curves(self.rows, self.names)
        if self._handle is None:
            self._handle = display(figure, display_id=True)
        else:
            self._handle.update(figure)
