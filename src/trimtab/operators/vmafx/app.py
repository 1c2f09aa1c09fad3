"""What ``trimtab run trimtab.operators.vmafx.app`` runs: the operator, everywhere."""

from __future__ import annotations

from trimtab.operators.vmafx.operator import make
from trimtab.operators.vmafx.programs import GATEWAY, NODES

app = make()
app.alongside(GATEWAY, NODES, installed=False)
