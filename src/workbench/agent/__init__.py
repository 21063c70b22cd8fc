"""Agent: protocols (prompt, parser, observation), batched rollouts, trajectories on disk."""
