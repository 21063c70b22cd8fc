"""Params: profiles (how big) and conditions (which method), validated YAML."""

from .load import dump_profile, load_profile, profile_names
from .profile import Profile

__all__ = ["Profile", "dump_profile", "load_profile", "profile_names"]
