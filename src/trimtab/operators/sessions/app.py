"""What ``trimtab run trimtab.operators.sessions.app`` runs: all sessions there are."""

from __future__ import annotations

import os
from random import SystemRandom

from trimtab.operators.sessions.operator import make
from trimtab.operators.sessions.settings import from_environment

app = make(from_environment(os.environ), random=SystemRandom())
