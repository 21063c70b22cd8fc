"""The panels that tell whether a training run is well."""

import numpy as np
import pandas as pd

from workbench.reporting.training import PANELS, diagnostics


def history(seeds, **columns):
    steps = np.arange(0, 11)
    return pd.concat(
        [
            pd.DataFrame({"seed": s, "step": steps, **columns}).assign(entropy=2.0 + s - steps / 10)
            for s in range(seeds)
        ]
    )


def test_what_was_not_logged_says_so():
    figure = diagnostics(history(1), window=1)
    panels = {axis.get_title(): axis for axis in figure.axes}
    assert list(panels) == list(PANELS)
    assert [t.get_text() for t in panels["KL to the base policy"].texts] == ["not computed"]
    (line,) = panels["entropy (nats per token)"].lines
    assert line.get_xdata().tolist() == list(range(1, 11)), "step 0 has no training rollouts"


def test_seeds_are_thin_lines_around_their_mean():
    axis = diagnostics(history(3), window=1).axes[2]
    *thin, mean = axis.lines
    assert len(thin) == 3 and len(axis.collections) == 1
    np.testing.assert_allclose(mean.get_ydata(), 3.0 - np.arange(1, 11) / 10)
