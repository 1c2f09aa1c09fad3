"""The keywords that verbs share, each written down once with its default.

Annotations are values here: as texts, ``typing`` compiles and keeps each of them.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias, TypedDict

from trimtab.api.selectors import FieldSelector, Selector

Labels: TypeAlias = str | Mapping[str, str] | Selector | None
Fields: TypeAlias = str | Mapping[str, str] | FieldSelector | None
Validation: TypeAlias = Literal["Strict", "Warn", "Ignore"]
Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]
Match: TypeAlias = Literal["Exact", "NotOlderThan"]


class Timed(TypedDict, total=False):
    deadline: float | None
    """Seconds for the call. Default: what the surrounding budget has left, else 30."""


class Reading(Timed, total=False):
    namespace: str | None
    """Default: the namespace of the kubeconfig's context."""
    resource_version: str | None
    """"0" takes what the server has at hand; None (default) the newest."""


class Selecting(Timed, total=False):
    namespace: str | None
    """Default: all namespaces."""
    labels: Labels
    fields: Fields
    resource_version: str | None
    raw: bool
    """Hand out each object as the JSON that was sent (``msgspec.Raw``), unread."""


class Listed(Selecting, total=False):
    page: int
    """Objects in a page, default 500; 0 asks for all. Deadlines are per page."""
    match: Match | None


class Watched(Selecting, total=False):
    initial_events: bool
    """Begin with the objects that are there, as ADDED, and a bookmark at their end."""
    bookmarks: bool
    """Default True."""
    timeout: int | None
    """Seconds after which the server ends the watch; default: as it likes."""
    idle: float
    """Seconds of silence after which the watch counts as dead; default 150."""


class Writing(Timed, total=False):
    manager: str | None
    """The field manager that is recorded with the write."""
    dry_run: bool
    """Do everything but keep it. Default False."""
    validation: Validation
    """What an unknown or doubled field does: default "Strict", an error."""


class Applying(Timed, total=False):
    force: bool
    """Take over fields that another manager owns. Default False: Conflict."""
    dry_run: bool
    validation: Validation


class Patching(Writing, total=False):
    namespace: str | None
    subresource: str | None


class Collecting(Timed, total=False):
    propagation: Propagation | None
    """What becomes of dependents; default: what the kind has as its default."""
    grace: int | None
    """Seconds that a pod has to end; 0 removes it at once."""
    dry_run: bool


class Deleting(Collecting, total=False):
    namespace: str | None
    uid: str | None
    """Only if the object is this very one, else Conflict."""
    resource_version: str | None
    """Only if the object has not changed since, else Conflict."""


def label_text(labels: Labels) -> str | None:
    """A label selector in the form that goes into a query; a bad mapping raises."""
    if isinstance(labels, Mapping):
        labels = Selector.from_mapping(labels)
    return None if labels is None else str(labels)


def field_text(fields: Fields) -> str | None:
    """A field selector in the form that goes into a query; a bad mapping raises."""
    if isinstance(fields, Mapping):
        fields = FieldSelector.from_mapping(fields)
    return None if fields is None else str(fields)
