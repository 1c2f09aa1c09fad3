"""Values that many samples share."""

from __future__ import annotations

from datetime import UTC, datetime

from trimtab.api.conditions import Condition, Conditions
from trimtab.api.quantity import Quantity
from trimtab.api.selectors import LabelSelector, LabelSelectorRequirement
from trimtab.api.times import MicroTime

NAME = "sample"
LABELS = {"app": NAME}
UID = "1b6b4e0e-6a52-4a0c-8f8e-9d3b8b2a7f10"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
INSTANT = MicroTime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)
ONE = Quantity("1")
EXPRESSION = LabelSelectorRequirement(key="tier", operator="In", values=["front"])
SELECTOR = LabelSelector(matchLabels=LABELS, matchExpressions=[EXPRESSION])
READY = Conditions(
    [
        Condition(
            type="Ready",
            status="True",
            reason="AllWell",
            message="It is well.",
            lastTransitionTime=NOW,
        )
    ]
)
OBSERVED = Conditions(
    [
        Condition(
            type="Ready",
            status="False",
            reason="Waiting",
            message="Not yet.",
            lastTransitionTime=NOW,
            observedGeneration=1,
        )
    ]
)
