"""Workbench for reproducible reinforcement learning of search agents.

The rooms follow the data: ``corpus`` -> ``retrieval`` -> ``questions`` -> ``agent`` (on
``engines``) -> ``methods`` -> ``grpo`` -> ``evaluation`` and ``voting`` -> ``inference`` ->
``reporting``.  A room imports only from rooms before it; importing this package imports
none of them, so that a command line answers before torch is loaded.
"""

__version__ = "0.1.0"
