"""Cases: rules on a schema, with the values that they are to judge."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from hack.crd_corpus.definitions import definition
from hack.crd_corpus.schemas import record

JSON = dict[str, Any]

EITHER: Final[JSON] = {"x-kubernetes-int-or-string": True}
KEEP: Final = "x-kubernetes-preserve-unknown-fields"
LIST_TYPE: Final = "x-kubernetes-list-type"
KEYS: Final = "x-kubernetes-list-map-keys"
RULES: Final = "x-kubernetes-validations"


class Case(NamedTuple):
    """Rules on one schema; each value is created, or follows an old one."""

    schema: JSON
    rules: list[JSON]
    values: list[Any]
    changes: list[tuple[Any, Any]] = []


def rule(written: str, **more: Any) -> JSON:
    """A rule as it stands in a schema."""
    return {"rule": written, **more}


def case_definition(index: int, case: Case) -> JSON:
    """The definition in which a case's schema is the property ``value`` of spec."""
    value = {
        **case.schema,
        RULES: [
            {key: text for key, text in each.items() if key == "rule" or text != ""}
            for each in case.rules
        ],
    }
    schema = record({"spec": record({"value": value})})
    return definition(f"case{index:03d}s", schema)
