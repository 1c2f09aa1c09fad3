"""Runs the worker program: ``python -m trimtab.pool.worker``."""

from trimtab.pool.worker.program import main

if __name__ == "__main__":
    main()
