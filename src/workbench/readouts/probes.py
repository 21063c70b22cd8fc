"""The four candidate readouts of S1 §7.2.1, simplest first, as scikit-learn pipelines.

Logistic regression is balanced by class; the MLPs stop early on a tenth of their rows, with
L2 1e-4.  Both read standardised states.  What S1 leaves open and is a setting here: the
logistic's C, the share and patience of early stopping, the epochs, the rows of a batch.  (With
scikit-learn's own 200 rows, 300 questions make two steps an epoch, and an MLP is stopped before
it has learned anything.)

Early stopping needs rows: its share is stratified, so each class must have one row in it.
With fewer than 1 / ``stopping_fraction`` rows of a class (10) the MLPs are no candidates and
logistic regression stands alone.  scikit-learn draws that share by rows, so rollouts of one
question lie on both sides of it; it decides when to stop, never which candidate is chosen.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from ..config import Settings
from ..errors import WorkbenchError
from ..seeding import seed_of
from .heads import check_finite

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

LOGISTIC = "logistic"
HIDDEN = {"mlp-64": (64,), "mlp-128": (128,), "mlp-256-128": (256, 128)}
ARCHITECTURES = (LOGISTIC, *HIDDEN)  # simplest first: the order in which ties are decided


class ProbeConfig(Settings):
    """``c`` is the logistic's inverse L2, ``l2`` the MLPs' weight decay (S1: 1e-4).

    An MLP stops when the held-out ``stopping_fraction`` has not improved for ``patience``
    epochs, after ``epochs`` at the latest.
    """

    c: float = Field(default=1.0, gt=0)
    logistic_iterations: int = Field(default=1000, ge=1)
    l2: float = Field(default=1e-4, ge=0)
    stopping_fraction: float = Field(default=0.1, gt=0, lt=1)
    patience: int = Field(default=20, ge=1)
    epochs: int = Field(default=200, ge=1)
    batch_rows: int = Field(default=32, ge=1)


class Unfit(WorkbenchError):
    """These calibration data carry no readout; who refits keeps the evaluator in force."""


def can_stop_early(labels: np.ndarray, config: ProbeConfig) -> bool:
    """Whether each class has the rows that early stopping needs."""
    return int(_counts(labels).min()) >= math.ceil(1 / config.stopping_fraction)


def fit_probe(
    architecture: str,
    states: np.ndarray,
    labels: np.ndarray,
    config: ProbeConfig | None = None,
    seed: int = 0,
) -> Pipeline:
    """A fitted pipeline; equal input and seed give equal bits.

    Parameters
    ----------
    architecture : one of ``ARCHITECTURES``.
    states : float [N, H].
    labels : bool or 0/1 [N].

    Raises
    ------
    Unfit : one class only, or too few rows for an MLP's early stopping.
    WorkbenchError : unknown architecture, features that are not finite, or lengths that differ.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    config = config or ProbeConfig()
    states, labels = np.asarray(states, dtype=np.float64), checked_labels(labels, len(states))
    check_finite(states)
    if not _counts(labels).all():
        kind = int(labels[0]) if len(labels) else "none"
        raise Unfit(f"{len(labels)} rows of one class only ({kind})", where=architecture)
    if architecture == LOGISTIC:
        classifier = LogisticRegression(
            C=config.c, class_weight="balanced", max_iter=config.logistic_iterations
        )
    elif architecture in HIDDEN:
        if not can_stop_early(labels, config):
            raise Unfit(
                f"{int(_counts(labels).min())} rows of a class are too few to stop early on "
                f"{config.stopping_fraction:.0%} of them",
                where=architecture,
                fix="collect more calibration questions, or use the logistic readout",
            )
        rest = 1 - config.stopping_fraction
        classifier = MLPClassifier(
            HIDDEN[architecture],
            alpha=config.l2,
            early_stopping=True,
            validation_fraction=config.stopping_fraction,
            n_iter_no_change=config.patience,
            max_iter=config.epochs,
            batch_size=min(config.batch_rows, math.floor(len(states) * rest)),
            random_state=seed_of("probe", architecture, seed) % 2**32,
        )
    else:
        raise WorkbenchError(
            f"no architecture {architecture!r}", fix=f"one of {', '.join(ARCHITECTURES)}"
        )
    pipeline = make_pipeline(StandardScaler(), classifier)
    with warnings.catch_warnings():  # stopped by ``epochs`` or iterations: as set
        warnings.simplefilter("ignore", ConvergenceWarning)
        return pipeline.fit(states, labels)


def checked_labels(labels: np.ndarray, rows: int) -> np.ndarray:
    """int64 [N] of 0 and 1.

    Raises
    ------
    WorkbenchError : other values, or not one label per row.
    """
    array = np.asarray(labels)
    if array.shape != (rows,) or not np.isin(array, (0, 1)).all():
        raise WorkbenchError(
            f"labels of shape {array.shape} for {rows} rows", fix="give one 0 or 1 per row"
        )
    return array.astype(np.int64)


def _counts(labels: np.ndarray) -> np.ndarray:
    return np.bincount(np.asarray(labels, dtype=np.int64), minlength=2)
