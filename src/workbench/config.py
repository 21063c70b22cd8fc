"""Base of all settings: strict types, unknown keys refused, values frozen."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A validated group of params.

    Strict: ``"1e-5"`` is not a float and ``1`` is not a bool, because papermill hands YAML
    ``1e-5`` over as text (write ``1.0e-5``); infinity and NaN are no values.  Each room defines
    its own subclass; ``workbench.params`` composes them into a profile.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)
