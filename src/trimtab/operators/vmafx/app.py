"""What ``trimtab run trimtab.operators.vmafx.app`` runs: the operator, everywhere."""

from __future__ import annotations

from random import SystemRandom

from trimtab.operators.vmafx.operator import make
from trimtab.operators.vmafx.programs import GATEWAY, NODES

app = make(random=SystemRandom())
app.alongside(GATEWAY, NODES, installed=False)
