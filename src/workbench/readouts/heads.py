"""A fitted readout as plain arrays: what is stored, and a NumPy forward pass that needs no pickle.

    x -> (x - mean) / scale -> [relu(x·W + b)]* -> sigmoid(x·w + b)

is what a scikit-learn pipeline of StandardScaler and LogisticRegression (no hidden layer) or
MLPClassifier computes as ``predict_proba(x)[:, 1]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import WorkbenchError

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Head:
    """One readout: ``architecture`` on the hidden states of ``layer``.

    ``mean``, ``scale`` float64 [H]; ``weights[k]`` float64 [in, out] and ``biases[k]`` float64
    [out], the last with out = 1.
    """

    architecture: str
    layer: int
    mean: np.ndarray
    scale: np.ndarray
    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]

    def score(self, states: np.ndarray) -> np.ndarray:
        """Probability float64 [N] in [0, 1] of the label, from states [N, H].

        Raises
        ------
        WorkbenchError : states of another width, or one that is NaN or infinite.
        """
        x = np.asarray(states, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != len(self.mean):
            raise WorkbenchError(
                f"states {x.shape}, this head reads [N, {len(self.mean)}]",
                where=f"readout {self.architecture} at layer {self.layer}",
            )
        check_finite(x)
        x = (x - self.mean) / self.scale
        for weight, bias in zip(self.weights[:-1], self.biases[:-1]):
            x = np.maximum(x @ weight + bias, 0.0)
        logit = (x @ self.weights[-1] + self.biases[-1])[:, 0]
        return np.exp(-np.logaddexp(0.0, -logit))

    def arrays(self) -> dict[str, np.ndarray]:
        """Its arrays by name; with ``architecture`` and ``layer`` all there is."""
        layers = zip(self.weights, self.biases, strict=True)
        numbered = {
            f"{name}{k}": array for k, wb in enumerate(layers) for name, array in zip("wb", wb)
        }
        return {"mean": self.mean, "scale": self.scale, **numbered}

    @classmethod
    def of(cls, architecture: str, layer: int, arrays: dict[str, np.ndarray]) -> Head:
        """The inverse of ``arrays``."""
        count = sum(name.startswith("w") for name in arrays)
        weights, biases = (tuple(arrays[f"{n}{k}"] for k in range(count)) for n in "wb")
        return cls(architecture, layer, arrays["mean"], arrays["scale"], weights, biases)


def head_of(pipeline: Pipeline, architecture: str, layer: int) -> Head:
    """The head of a fitted pipeline of ``workbench.readouts.probes``."""
    scaler, classifier = pipeline[0], pipeline[-1]
    if hasattr(classifier, "coefs_"):
        weights, biases = classifier.coefs_, classifier.intercepts_
    else:
        weights, biases = [classifier.coef_.T], [classifier.intercept_]
    return Head(
        architecture,
        layer,
        scaler.mean_.copy(),
        scaler.scale_.copy(),
        tuple(np.ascontiguousarray(w, dtype=np.float64) for w in weights),
        tuple(np.array(b, dtype=np.float64) for b in biases),
    )


def check_finite(states: np.ndarray) -> None:
    """Refuse features that are NaN or infinite.

    Raises
    ------
    WorkbenchError : names the first such row and how many there are.
    """
    bad = ~np.isfinite(states).all(axis=tuple(range(1, states.ndim)))
    if bad.any():
        raise WorkbenchError(
            f"{int(bad.sum())} of {len(states)} rows of features are NaN or infinite",
            where=f"row {int(np.argmax(bad))}",
            fix="the weights or the arithmetic broke: check the last update and dtype",
        )
