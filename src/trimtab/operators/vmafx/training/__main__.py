"""Runs a trainer: ``python -m trimtab.operators.vmafx.training``."""

import sys
from datetime import UTC, datetime

try:
    from trimtab.operators.vmafx.training.program import main
except ModuleNotFoundError as error:
    sys.exit(f"trainer: {error.name} is missing: pip install 'trimtab[training]'.")

if __name__ == "__main__":
    sys.exit(main(now=lambda: datetime.now(UTC)))
