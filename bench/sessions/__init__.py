"""The operator of agent sessions, measured: `python -m bench.sessions`."""
