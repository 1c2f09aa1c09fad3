"""Constants: arguments that stand in the text and are sure to fail."""

from __future__ import annotations

from typing import Any

from trimtab.embedded.expressions import conversions
from trimtab.embedded.expressions.nodes import Call
from trimtab.embedded.expressions.values import EvaluationError
from trimtab.embedded.patterns import PatternError, compiled


def literal_mistake(call: Call, value: Any) -> bool:
    """Whether a call with this constant as its first argument can only fail."""
    try:
        if call.function == "duration":
            conversions.to_duration(value)
        elif call.function == "timestamp":
            conversions.to_timestamp(value)
        elif call.function == "matches" and isinstance(value, str):
            compiled(value)
    except (EvaluationError, PatternError):
        return True
    return False
