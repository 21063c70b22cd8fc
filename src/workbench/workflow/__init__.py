"""The notebook graph: stages, their execution, and what a notebook sees of them."""

from .environment import interactive
from .notebook import Run, open_run

__all__ = ["Run", "interactive", "open_run"]
