"""The scenarios, by what they are about; importing this notes them all."""

from tests.differential.stories import (
    applying,
    asking,
    changing,
    creating,
    deleting,
    describing,
    found,
    ratcheting,
    reading,
    versions,
    watching,
)

__all__ = [
    "applying",
    "asking",
    "changing",
    "creating",
    "deleting",
    "describing",
    "found",
    "ratcheting",
    "reading",
    "versions",
    "watching",
]
