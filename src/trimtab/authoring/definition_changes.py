"""Definition changes: versions, names and all else of a CRD but the schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trimtab.authoring.findings import Difference, Level
from trimtab.authoring.schema_changes import compare as compare_schemas

Plain = Mapping[str, Any]

# What the server never changes once a CRD is there.
FIXED: Final = (("scope",), ("names", "kind"), ("names", "plural"))
NAMES: Final = ("singular", "listKind", "shortNames", "categories")
PARTS: Final = {
    "additionalPrinterColumns": "the columns that kubectl shows",
    "selectableFields": "the fields that field selectors may name",
    "deprecated": "whether it is deprecated",
    "deprecationWarning": "the warning to clients",
}


def compare(deployed: Plain, wanted: Plain) -> Iterator[Difference]:
    """Everything that differs, the gravest kinds of change first."""
    old, new = deployed["spec"], wanted["spec"]
    yield from _fixed(old, new)
    yield from _versions(deployed, new)
    yield from _names(old, new)
    before, now = _by_name(old), _by_name(new)
    for name in [name for name in now if name in before]:
        yield from _version(name, before[name], now[name])


def served(spec: Plain) -> list[str]:
    """The versions that can be read, the one that is stored first."""
    found = sorted(spec["versions"], key=lambda each: not each.get("storage"))
    return [each["name"] for each in found if each.get("served")]


def storage(spec: Plain) -> str:
    return next(str(each["name"]) for each in spec["versions"] if each.get("storage"))


def _says(path: str, level: Level, what: str) -> Difference:
    return Difference(path=path, level=level, what=what)


def _fixed(old: Plain, new: Plain) -> Iterator[Difference]:
    for path in FIXED:
        before, now = _at(old, path), _at(new, path)
        if before != now:
            yield _says(
                ".".join(path),
                "breaks",
                f"it was {before} and is {now}, which no server changes: give the kind "
                "another name, or delete the CRD and with it every object",
            )
    before, now = (_strategy(each) for each in (old, new))
    # A kind that an operator converts leaves this to the operator.
    if before != now and "conversion" in new:
        what = f"its strategy was {before} and is {now}"
        yield _says("conversion", "changes", what)


def _versions(deployed: Plain, new: Plain) -> Iterator[Difference]:
    old = deployed["spec"]
    stored = (deployed.get("status") or {}).get("storedVersions") or []
    before, now = _by_name(old), _by_name(new)
    kind = new["names"]["kind"]
    for name in before:
        if name in now:
            continue
        if name in stored:
            yield _says(
                name,
                "breaks",
                "it is gone from the classes and still in storedVersions, so the "
                "server refuses the CRD: keep its class with served=False and "
                f"storage=False, run trimtab migrate {kind}, and then remove it",
            )
        else:
            yield _says(name, "breaks", "it is gone: whoever asks for it gets a 404")
    for name in now:
        if name not in before:
            yield _says(name, "differs", "it is a new version")
    if (was := storage(old)) != (is_ := storage(new)):
        yield _says(
            is_,
            "differs",
            f"objects are stored in it and were in {was}: they are rewritten when "
            f"somebody writes them, or all at once by trimtab migrate {kind}",
        )


def _names(old: Plain, new: Plain) -> Iterator[Difference]:
    for key in NAMES:
        before, now = old["names"].get(key), new["names"].get(key)
        if (before or None) != (now or None):
            what = f"it was {before or 'not set'} and is {now or 'not set'}"
            yield _says(f"names.{key}", "differs", what)


def _version(name: str, old: Plain, new: Plain) -> Iterator[Difference]:
    if old.get("served") and not new.get("served"):
        yield _says(name, "breaks", "it is no longer served: who asks for it gets 404")
    elif new.get("served") and not old.get("served"):
        yield _says(name, "differs", "it is served again")
    yield from _subresources(name, old, new)
    for key, what in PARTS.items():
        if (old.get(key) or None) != (new.get(key) or None):
            yield _says(name, "differs", f"{what} differ")
    yield from compare_schemas(_schema(old), _schema(new), version=name)


def _subresources(name: str, old: Plain, new: Plain) -> Iterator[Difference]:
    before, now = old.get("subresources") or {}, new.get("subresources") or {}
    for key in ("status", "scale"):
        if key in before and key not in now:
            what = f"the subresource {key} is gone: who writes it gets a 404"
            yield _says(name, "breaks", what)
        elif key in now and key not in before:
            harm = "; until the CRD is applied the operator cannot write its status"
            level: Level = "breaks" if key == "status" else "differs"
            what = f"the subresource {key} is new{harm if key == 'status' else ''}"
            yield _says(name, level, what)
        elif before.get(key) != now.get(key):
            yield _says(name, "changes", f"the subresource {key} has other paths")


def _at(spec: Plain, path: tuple[str, ...]) -> Any:
    found: Any = spec
    for step in path:
        found = found[step]
    return found


def _strategy(spec: Plain) -> str:
    return str((spec.get("conversion") or {}).get("strategy") or "None")


def _by_name(spec: Plain) -> dict[str, Plain]:
    return {each["name"]: each for each in spec["versions"]}


def _schema(version: Plain) -> Plain:
    found: Plain = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return found
