"""Runs the runner: ``python -m trimtab.operators.sessions.runner``."""

import sys

from trimtab.operators.sessions.runner.program import main

if __name__ == "__main__":
    sys.exit(main())
