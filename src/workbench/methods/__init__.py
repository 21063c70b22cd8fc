"""Methods: rewards and credit, one module each; params/conditions names them."""

from .base import Context
from .registry import Condition, build_method, condition_names, load_condition, method_names

__all__ = [
    "Condition",
    "Context",
    "build_method",
    "condition_names",
    "load_condition",
    "method_names",
]
