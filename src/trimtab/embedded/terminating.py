"""Terminating: what a namespace that is being deleted says it waits for.

In the words, and under the names, in which people know it from the controller that
empties namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trimtab.embedded.kinds import Plain

CONTENT_FAILURE = "NamespaceDeletionContentFailure"
CONTENT_REMAINING = "NamespaceContentRemaining"
FINALIZERS_REMAINING = "NamespaceFinalizersRemaining"
# What is said of each where all is well.
WELL = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    CONTENT_FAILURE: (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    CONTENT_REMAINING: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS_REMAINING: (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}


def report(
    namespace: Plain,
    *,
    remaining: Mapping[str, int],
    finalizers: Mapping[str, int],
    failures: Iterable[str],
    now: str,
) -> None:
    """Write into a namespace what keeps it.

    ``remaining`` and ``finalizers`` are how many objects there are of each resource
    (``plural.group``), and with each finalizer; ``failures`` why some were not deleted.
    """
    told = _complaints(remaining, finalizers, sorted(failures))
    conditions = namespace.setdefault("status", {}).setdefault("conditions", [])
    for type, well in WELL.items():
        reason, message = told.get(type, well)
        made = {
            "type": type,
            "status": "True" if type in told else "False",
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        old = next((each for each in conditions if each["type"] == type), None)
        if old is None:
            conditions.append(made)
            continue
        if old["status"] == made["status"]:
            made["lastTransitionTime"] = old["lastTransitionTime"]
        old.update(made)


def _complaints(
    remaining: Mapping[str, int], finalizers: Mapping[str, int], failures: list[str]
) -> dict[str, tuple[str, str]]:
    told = {}
    if failures:
        text = f"Failed to delete all resource types, {len(failures)} remaining: "
        told[CONTENT_FAILURE] = "ContentDeletionFailed", text + ", ".join(failures)
    if remaining:
        parts = [f"{name} has {n} resource instances" for name, n in remaining.items()]
        text = "Some resources are remaining: " + ", ".join(sorted(parts))
        told[CONTENT_REMAINING] = "SomeResourcesRemain", text
    if finalizers:
        parts = [f"{name} in {n} resource instances" for name, n in finalizers.items()]
        text = "Some content in the namespace has finalizers remaining: "
        told[FINALIZERS_REMAINING] = (
            "SomeFinalizersRemain",
            text + ", ".join(sorted(parts)),
        )
    return told
