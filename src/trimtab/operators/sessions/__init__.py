"""Agent sessions: runner pods that start, stop, resume, time out, and never stay."""
