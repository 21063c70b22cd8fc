"""One way to write numbers in tables and sentences."""

from __future__ import annotations


def decimal(value: float, digits: int = 3, signed: bool = False) -> str:
    """``value`` with ``digits`` decimals; ``signed`` writes "+" too.

    What rounds to zero has no sign: "-0.000" would look like a difference.
    """
    text = f"{value:{'+' if signed else ''}.{digits}f}"
    return text.lstrip("+-") if not text.strip("+-0.") else text
