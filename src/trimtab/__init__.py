"""Trimtab: a level-triggered operator runtime for Python that stays small.

Names are imported when they are first used, so that ``import trimtab`` costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimtab.api import Column as Column
    from trimtab.api import Condition as Condition
    from trimtab.api import Conditions as Conditions
    from trimtab.api import Duration as Duration
    from trimtab.api import LabelSelector as LabelSelector
    from trimtab.api import Metadata as Metadata
    from trimtab.api import MicroTime as MicroTime
    from trimtab.api import Object as Object
    from trimtab.api import OwnerReference as OwnerReference
    from trimtab.api import Quantity as Quantity
    from trimtab.api import Resource as Resource
    from trimtab.api import Rule as Rule
    from trimtab.api import Scale as Scale
    from trimtab.api import Schema as Schema
    from trimtab.api import Spec as Spec
    from trimtab.api import Status as Status
    from trimtab.api import crd as crd
    from trimtab.api import field as field
    from trimtab.api import owner_of as owner_of
    from trimtab.api import status_of as status_of
    from trimtab.cache import Scope as Scope
    from trimtab.client import Client as Client
    from trimtab.client import Config as Config
    from trimtab.client import Options as Options
    from trimtab.client import budget as budget
    from trimtab.client import load as load
    from trimtab.runtime import BlockingContext as BlockingContext
    from trimtab.runtime import Context as Context
    from trimtab.runtime import Operator as Operator
    from trimtab.runtime import Owned as Owned
    from trimtab.runtime import Refused as Refused
    from trimtab.runtime import Result as Result
    from trimtab.runtime import Retry as Retry
    from trimtab.runtime import Review as Review
    from trimtab.runtime import Terminal as Terminal
    from trimtab.runtime import Watched as Watched

_FROM = {
    "trimtab.api": (
        "Column",
        "Condition",
        "Conditions",
        "Duration",
        "LabelSelector",
        "Metadata",
        "MicroTime",
        "Object",
        "OwnerReference",
        "Quantity",
        "Resource",
        "Rule",
        "Scale",
        "Schema",
        "Spec",
        "Status",
        "crd",
        "field",
        "owner_of",
        "status_of",
    ),
    "trimtab.cache": ("Scope",),
    "trimtab.client": ("Client", "Config", "Options", "budget", "load"),
    "trimtab.runtime": (
        "BlockingContext",
        "Context",
        "Operator",
        "Owned",
        "Refused",
        "Result",
        "Retry",
        "Review",
        "Terminal",
        "Watched",
    ),
}
_HOME = {name: module for module, names in _FROM.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605
__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trimtab' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
