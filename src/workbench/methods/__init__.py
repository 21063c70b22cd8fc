"""Methods: rewards and credit, one module each; params/conditions names them."""

from .registry import Condition, build_method, condition_names, load_condition, method_names

__all__ = ["Condition", "build_method", "condition_names", "load_condition", "method_names"]
