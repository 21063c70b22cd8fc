"""Intervals and tests: one bootstrap, its paired and hierarchical forms, Wilson, t and Holm."""

from .bootstrap import (
    BootstrapConfig,
    Interval,
    bootstrap_mean,
    bootstrap_means,
    hierarchical_bootstrap,
)
from .classical import holm, t_interval, wilson

__all__ = [
    "BootstrapConfig",
    "Interval",
    "bootstrap_mean",
    "bootstrap_means",
    "hierarchical_bootstrap",
    "holm",
    "t_interval",
    "wilson",
]
