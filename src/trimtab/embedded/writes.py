"""Writes: where a write goes and how, what comes of it, and the options it has.

The real server looks at the options before it looks at the object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trimtab.embedded import status
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.requests import ApiRequest, Target, User
from trimtab.embedded.status import ApiProblem, FieldProblem
from trimtab.embedded.store import Row

APPLY_PATCH = "application/apply-patch+yaml"
MAX_MANAGER = 128
OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
VALIDATIONS = ("", "Ignore", "Strict", "Warn")
MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and "
    "try again"
)
"""What a lost compare-and-swap is called."""


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """Where a write goes and how: all that is not the object."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    manager: str = ""
    dry_run: bool = False
    validation: str = "Warn"
    force: bool = False
    warnings: list[str] = []
    """What the client is told beside the answer, whatever that is."""
    emptied: list[str] = []
    """What the body has, empty or null, and reading drops, where that is not the same
    as nothing."""
    guard: Callable[[Plain, Plain | None], None] | None = None
    """Refuses an object that whoever writes may not store; the second is what it
    replaces."""
    user: User | None = None
    """Who writes; None if it is the server itself, which asks nobody."""
    query: Mapping[str, str] = {}
    """The options as they were given."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a write came to: an object, or a ``Status``."""

    obj: Plain
    created: bool = False
    text: bytes | None = None
    """What is answered instead of an object: a log."""


class Misfit(ApiProblem):
    """A body with a value that its field cannot hold, or a field it cannot have."""

    def __init__(self, handled: str, detail: str) -> None:
        super().__init__(400, "BadRequest", f"{handled}{detail}")
        self.detail = detail


def write_of(request: ApiRequest, target: Target, kind: Kind) -> Write:
    """How a request wants to write; 422 if it may not be asked for like that."""
    query = request.query
    _check_options(request)
    return Write(
        kind=kind,
        namespace=target.namespace,
        name=target.name,
        subresource=target.subresource,
        manager=_manager(request),
        dry_run=bool(query.get("dryRun")),
        validation=query.get("fieldValidation", "") or "Warn",
        force=request.flag("force"),
        user=request.user,
        query=query,
    )


def _check_options(request: ApiRequest) -> None:
    kind = OPTIONS.get(request.method)
    problems = _option_problems(request) if kind else []
    if kind and problems:
        named = status.GroupResource("meta.k8s.io", kind)
        raise status.invalid_object(named, "", problems)


def _option_problems(request: ApiRequest) -> list[FieldProblem]:
    query = request.query
    problems = _patch_problems(request) if request.method == "PATCH" else []
    manager = query.get("fieldManager", "")
    if len(manager.encode()) > MAX_MANAGER:
        problems.append(status.too_long("fieldManager", MAX_MANAGER))
    for index, letter in enumerate(manager):
        if not letter.isprintable():
            detail = f"invalid character U+{ord(letter):04X} (at position {index})"
            problems.append(status.invalid("fieldManager", manager, detail))
    dry_run = query.get("dryRun", "All")
    if dry_run != "All":
        problems.append(status.not_supported("dryRun", [dry_run], ("All",)))
    validation = query.get("fieldValidation", "")
    if validation not in VALIDATIONS:
        problem = status.not_supported("fieldValidation", validation, VALIDATIONS)
        problems.append(problem)
    return problems


def _patch_problems(request: ApiRequest) -> list[FieldProblem]:
    if not _is_apply(request):
        if not request.flag("force"):
            return []
        detail = "may not be specified for non-apply patch"
        return [status.forbidden_value("force", detail)]
    if request.query.get("fieldManager"):
        return []
    return [status.required("fieldManager", "is required for apply patch")]


def _is_apply(request: ApiRequest) -> bool:
    media = request.headers.get("content-type", "").split(";")[0].strip()
    return request.method == "PATCH" and media == APPLY_PATCH


def _manager(request: ApiRequest) -> str:
    """Who a write is by: the named manager, else the client program."""
    named = request.query.get("fieldManager", "")
    if named:
        return named
    agent = request.headers.get("user-agent", "")
    return agent.split("/")[0][:MAX_MANAGER] or "unknown"


def number(text: Any) -> int:
    """A version as a number; 0 if it is none."""
    return int(text) if isinstance(text, str) and text.isdecimal() else 0


def check_segment(name: str) -> None:
    """That a name can be part of a path; 400 if not, as the storage says it."""
    if name in (".", ".."):
        problem = f"may not be '{name}'"
    elif "%" in name:
        problem = "may not contain '%'"
    else:
        return
    raise status.bad_request(
        f"Name parameter invalid: {status.quoted(name)}: {problem}"
    )


def other_uid(write: Write, wanted: str, found: str) -> ApiProblem:
    """That an object is not the one that a write is about, as the storage says it."""
    key = write.kind.etcd_key(write.namespace, write.name)
    return status.conflict(
        write.kind.about,
        write.name,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, "
        f"UID in object meta: {found}",
    )


def misnamed(meta: Plain, write: Write) -> ApiProblem:
    """That an object is not the one that the path names."""
    if not meta.get("name"):
        return status.bad_request(
            f"the name of the object ({write.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    return status.bad_request(
        f"the name of the object ({meta.get('name', '')}) does not match the name on "
        f"the URL ({write.name})"
    )


def check_version(write: Write, meta: Plain, row: Row) -> None:
    """That a write is about the present version, or about none if it may be."""
    kind = write.kind
    given = meta.get("resourceVersion", "")
    try:
        wanted = int(given or 0)
    except ValueError:
        message = f'strconv.ParseUint: parsing "{given}": invalid syntax'
        raise ApiProblem(500, "", message) from None
    if wanted and wanted != row.revision:
        raise status.conflict(kind.about, write.name, MODIFIED)
    if not wanted and kind.conditional:
        problem = status.invalid(
            "metadata.resourceVersion", 0, "must be specified for an update"
        )
        raise status.invalid_object(kind.about, write.name, [problem])
