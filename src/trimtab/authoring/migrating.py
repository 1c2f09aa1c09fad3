"""Migrating: every stored object rewritten in the version that is stored now.

An object stays stored in the version in which it was last written, so a version cannot
be removed while ``status.storedVersions`` names it. Here each object is written again
as it is, which changes nothing but that, and then the list is shortened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from trimtab.api.resource import Info
from trimtab.authoring.crds import DEFINITIONS
from trimtab.authoring.definition_changes import storage
from trimtab.authoring.findings import Objects
from trimtab.client import Client
from trimtab.client.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    TrimtabError,
    Unauthorized,
)

Plain = dict[str, Any]
PROGRESS: Final = "trimtab.dev/migrated"
"""On the CRD while a migration is under way: the version, and the revision at which it
began. An object of a later revision was written since, and so is stored in it."""
PAGE: Final = 200


class NotMigrated(TrimtabError):
    """Not all objects could be rewritten; what was done stays done."""


class Migrated(msgspec.Struct, kw_only=True):
    """What a migration has done."""

    version: str
    before: list[str]
    """The versions that objects may have been stored in."""
    rewritten: int = 0
    skipped: int = 0
    """Objects that an earlier run, or somebody else, had written since."""


async def find(client: Client, name: str) -> Plain:
    """The CRD of a kind, by whatever people call it.

    Errors: :class:`NotMigrated` when there is none, or several.
    """
    found = []
    async for each in client.list(DEFINITIONS):
        names = each["spec"]["names"]
        known = {names["kind"].lower(), names["plural"], names.get("singular")}
        known |= {each["metadata"]["name"], *(names.get("shortNames") or ())}
        if name.lower() in known:
            found.append(each)
    if len(found) != 1:
        said = ", ".join(each["metadata"]["name"] for each in found)
        raise NotMigrated(
            f"{name} may be {said}; name one of these."
            if found
            else f"The server has no CRD of a kind {name}; check the spelling."
        )
    return found[0]


async def migrate(
    client: Client, definition: Plain, *, tell: Callable[[str], None]
) -> Migrated:
    """Rewrite every object of a kind.

    Flow: the CRD notes the revision at which it begins; what has a later one is stored
    in the right version already, so another run goes on where this one ended. At the
    end ``storedVersions`` names the one version only, and the note goes.

    Guarantees: an object that somebody else writes or deletes meanwhile is left to
    them: theirs is the newer one, and stored in the right version.

    Errors: :class:`NotMigrated` when some objects were refused; ``storedVersions`` is
    then as it was. :class:`Conflict` when the CRD changed meanwhile.
    """
    name = definition["metadata"]["name"]
    version = storage(definition["spec"])
    stored = (definition.get("status") or {}).get("storedVersions") or []
    done = Migrated(version=version, before=list(stored))
    if stored == [version]:
        return done
    begun = _progress(definition, version)
    if begun is None:
        begun = int(definition["metadata"]["resourceVersion"])
        await _note(client, name, f"{version} {begun}")
    refused = Objects()
    reasons: list[str] = []
    listing = client.list(_resource(definition, version), page=PAGE)
    async for obj in listing:
        if int(obj["metadata"]["resourceVersion"]) > begun:
            done.skipped += 1
        elif problem := await _rewritten(client, obj):
            refused.add(_key(obj))
            reasons.append(problem)
        else:
            done.rewritten += 1
            tell(f"{done.rewritten} objects rewritten")
    if refused.count:
        raise NotMigrated(
            f"{refused.count} objects of {name} could not be rewritten ({refused}), so "
            f"its storedVersions stay: {reasons[0]}"
        )
    await _finish(client, name, version)
    return done


async def _rewritten(client: Client, obj: Plain) -> str:
    """Write an object as it is; what the server has against it, if anything."""
    try:
        await client.replace(obj, validation="Ignore")
    except (Conflict, NotFound):
        return ""
    except (Forbidden, Unauthorized):
        raise
    except ApiError as error:
        return str(error)
    return ""


async def _note(client: Client, name: str, text: str | None) -> None:
    body = {"metadata": {"annotations": {PROGRESS: text}}}
    await client.patch(DEFINITIONS, name, body)


async def _finish(client: Client, name: str, version: str) -> None:
    """Shorten the list, unless the CRD stores another version by now."""
    found = await client.get(DEFINITIONS, name)
    if storage(found["spec"]) != version:
        raise NotMigrated(
            f"{name} stores another version than {version} by now; run it again."
        )
    revision = found["metadata"]["resourceVersion"]
    body = {
        "metadata": {"resourceVersion": revision},
        "status": {"storedVersions": [version]},
    }
    await client.patch(DEFINITIONS, name, body, subresource="status")
    await _note(client, name, None)


def _progress(definition: Plain, version: str) -> int | None:
    """The revision at which an earlier run to this version began."""
    said = (definition["metadata"].get("annotations") or {}).get(PROGRESS, "")
    to, _, revision = said.partition(" ")
    return int(revision) if to == version and revision.isdecimal() else None


def _key(obj: Plain) -> str:
    metadata = obj["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _resource(definition: Plain, version: str) -> Info:
    spec = definition["spec"]
    return Info(
        group=spec["group"],
        version=version,
        kind=spec["names"]["kind"],
        plural=spec["names"]["plural"],
        namespaced=spec["scope"] == "Namespaced",
    )
