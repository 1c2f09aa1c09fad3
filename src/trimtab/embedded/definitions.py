"""Definitions: the CustomResourceDefinition objects themselves, from wish to service.

Pure functions over plain objects: what is filled in, which names a definition gets when
two want the same, and the conditions that say how far it has come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from trimtab.embedded import addresses, formats, status
from trimtab.embedded.addresses import AddressError
from trimtab.embedded.gotext import quoted
from trimtab.embedded.structural import children, structural_problems, unsupported

Plain = dict[str, Any]

CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
APPROVAL: Final = "api-approved.kubernetes.io"
_MORE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


def set_defaults(crd: Plain) -> None:
    """Fill in, in place, what a definition leaves out."""
    spec = crd.setdefault("spec", {})
    _complete(crd)
    names = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    webhook = spec["conversion"].get("webhook") or {}
    service = (webhook.get("clientConfig") or {}).get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443


def _complete(crd: Plain) -> None:
    """Put what Go reads in place of nothing where the checks count on something."""
    for owner in (crd.get("metadata") or {}).get("ownerReferences") or ():
        for field in ("apiVersion", "kind", "name", "uid"):
            owner[field] = owner.get(field) or ""
    spec = crd["spec"]
    if spec.get("versions"):
        spec["versions"] = [each or {} for each in spec["versions"]]
    for version in spec.get("versions") or ():
        version["name"] = version.get("name") or ""
        _complete_schema((version.get("schema") or {}).get("openAPIV3Schema") or {})


def _complete_schema(raw: Any) -> None:
    """Among others, a schema that is null is an empty one."""
    for word in ("properties", "patternProperties", "definitions"):
        if raw.get(word):
            raw[word] = {name: each or {} for name, each in raw[word].items()}
    for word in ("allOf", "anyOf", "oneOf"):
        if raw.get(word):
            raw[word] = [each or {} for each in raw[word]]
    for child in children(raw):
        _complete_schema(child)


def prepare(crd: Plain, old: Plain | None, *, subresource: str = "") -> None:
    """What only the server writes, in place: the status, and which versions are stored.

    Assumptions: the caller counts generations and keeps metadata.
    """
    if subresource == "status":
        assert old is not None, "there is no status before there is an object"
        crd["spec"] = old["spec"]
        return
    if old is None:
        crd["status"] = {}
    else:
        crd["status"] = {**(old.get("status") or {})}
    stored = list(crd["status"].get("storedVersions") or ())
    for version in crd["spec"].get("versions") or ():
        if version.get("storage"):
            if version["name"] not in stored:
                stored.append(version["name"])
            break
    if old is None:
        crd["status"].update(conditions=None, acceptedNames={"plural": "", "kind": ""})
    crd["status"]["storedVersions"] = stored or None


def establish(crd: Plain, others: Iterable[Plain], *, now: str) -> None:
    """Accept the names of a definition and put it into service, in place.

    ``others`` are the other definitions; their accepted names are taken. ``now`` is the
    time that a changed condition gets.

    Guarantees: the conditions end as those of the real server do, which comes there in
    several steps. Doing it again changes nothing.
    """
    state = crd.setdefault("status", {})
    names = crd["spec"]["names"]
    accepted = state.get("acceptedNames") or {}
    if not _same_names(names, accepted):
        _accept_names(crd, others, now)
    if is_true(crd, "NamesAccepted") and not is_true(crd, "Established"):
        text = "the initial names have been accepted"
        _set(crd, "Established", "True", "InitialNamesAccepted", text, now)
    _judge_approval(crd, now)
    _judge_schema(crd, now)


def _same_names(names: Mapping[str, Any], accepted: Mapping[str, Any]) -> bool:
    keys = names.keys() | accepted.keys()
    return all((names.get(key) or None) == (accepted.get(key) or None) for key in keys)


def _accept_names(crd: Plain, others: Iterable[Plain], now: str) -> None:
    spec, state = crd["spec"], crd["status"]
    resources, kinds = _taken(spec["group"], others)
    wished = spec["names"]
    had = {**(state.get("acceptedNames") or {})}
    new = {**had}
    conflict = ("", "")
    for field, taken, reason in (
        ("plural", resources, "PluralConflict"),
        ("singular", resources, "SingularConflict"),
    ):
        problem = _claim(field, wished, had, new, taken)
        conflict = (reason, problem) if problem else conflict
    problem = _claim_short_names(wished, had, new, resources)
    conflict = ("ShortNamesConflict", problem) if problem else conflict
    for field, taken, reason in (
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    ):
        problem = _claim(field, wished, had, new, taken)
        conflict = (reason, problem) if problem else conflict
    new["categories"] = wished.get("categories")
    state["acceptedNames"] = {key: value for key, value in new.items() if value}
    for field in ("plural", "kind"):
        state["acceptedNames"].setdefault(field, "")
    if conflict[0]:
        _set(crd, "NamesAccepted", "False", *conflict, now)
        if condition(crd, "Established") is None:
            text = "not all names are accepted"
            _set(crd, "Established", "False", "NotAccepted", text, now)
    else:
        text = "no conflicts found"
        _set(crd, "NamesAccepted", "True", "NoConflicts", text, now)


def _taken(group: str, others: Iterable[Plain]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"]["group"] != group:
            continue
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources |= {names.get("plural", ""), names.get("singular", "")}
        resources |= set(names.get("shortNames") or ())
        kinds |= {names.get("kind", ""), names.get("listKind", "")}
    return resources, kinds


def _claim(field: str, wished: Plain, had: Plain, new: Plain, taken: set[str]) -> str:
    """Take a name if nobody else has it; otherwise say so."""
    name = wished.get(field, "")
    if name != had.get(field, "") and name in taken:
        return f"{quoted(name)} is already in use"
    new[field] = name
    return ""


def _claim_short_names(wished: Plain, had: Plain, new: Plain, taken: set[str]) -> str:
    names, before = wished.get("shortNames") or [], had.get("shortNames") or []
    if names == before:
        return ""
    problems = [
        f"{quoted(name)} is already in use"
        for name in names
        if name not in before and name in taken
    ]
    if not problems:
        new["shortNames"] = names
    return f"[{', '.join(problems)}]" if len(problems) > 1 else "".join(problems)


def terminating(crd: Plain, *, now: str) -> None:
    """Mark a definition that is going, in place."""
    text = (
        "CustomResourceDefinition marked for deletion; CustomResource deletion will "
        "begin soon"
    )
    _set(crd, "Terminating", "True", "InstanceDeletionPending", text, now)
    finalizers = crd["metadata"].setdefault("finalizers", [])
    if CLEANUP_FINALIZER not in finalizers:
        finalizers.append(CLEANUP_FINALIZER)


def condition(crd: Mapping[str, Any], kind: str) -> Plain | None:
    """The condition of a type, if there is one."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def is_true(crd: Mapping[str, Any], kind: str) -> bool:
    """Whether a condition is there and true."""
    found = condition(crd, kind)
    return found is not None and found["status"] == "True"


def _set(
    crd: Plain, kind: str, state: str, reason: str, message: str, now: str
) -> None:
    found = condition(crd, kind)
    if found is None:
        found = {"type": kind, "status": "", "lastTransitionTime": now}
        held = crd["status"].get("conditions") or []
        crd["status"]["conditions"] = [*held, found]
    if found["status"] != state:
        found["lastTransitionTime"] = now
    found.update(status=state, reason=reason, message=message)


def is_protected(group: str) -> bool:
    """Whether a group is Kubernetes' own, so that its definitions need approval."""
    return any(
        group == own or group.endswith(f".{own}") for own in ("k8s.io", "kubernetes.io")
    )


def approval(crd: Mapping[str, Any]) -> tuple[str, str]:
    """Whether a definition in a protected group is approved, and why (not)."""
    said = (crd["metadata"].get("annotations") or {}).get(APPROVAL) or ""
    must = f"protected groups must have approval annotation {quoted(APPROVAL)}"
    if not said:
        return "missing", f"{must}, {_MORE}"
    if said.startswith("unapproved"):
        return "bypassed", f"not approved: {quoted(said)}"
    try:
        url = addresses.request_url(said)
    except AddressError:
        url = addresses.Url()
    if url.host and url.scheme:
        return "approved", f"approved in {said}"
    either = 'with either a URL or a reason starting with "unapproved"'
    return "invalid", f"{must} {either}, {_MORE}"


def _judge_approval(crd: Plain, now: str) -> None:
    if not is_protected(crd["spec"]["group"]):
        return
    state, text = approval(crd)
    reasons = {
        "invalid": "InvalidAnnotation",
        "missing": "MissingAnnotation",
        "approved": "ApprovedAnnotation",
        "bypassed": "UnapprovedAnnotation",
    }
    value = "True" if state == "approved" else "False"
    kind = "KubernetesAPIApprovalPolicyConformant"
    _set(crd, kind, value, reasons[state], text, now)


def _judge_schema(crd: Plain, now: str) -> None:
    """Complain of schemas that are not structural; only old definitions have such."""
    found = []
    for index, version in enumerate(crd["spec"]["versions"]):
        raw = (version.get("schema") or {}).get("openAPIV3Schema")
        if raw and not unsupported(raw):
            path = f"spec.versions[{index}].schema.openAPIV3Schema"
            found += structural_problems(raw, path)
    kind = "NonStructuralSchema"
    if found:
        _set(crd, kind, "True", "Violations", status.aggregate(found), now)
    elif condition(crd, kind) is not None:
        conditions = crd["status"]["conditions"]
        crd["status"]["conditions"] = [
            each for each in conditions if each["type"] != kind
        ]


def warnings(crd: Plain, old: Plain | None = None) -> list[str]:
    """What whoever writes a definition is warned of: formats that mean nothing."""
    known = set(_unknown_formats(old)) if old is not None else set()
    new = [each for each in _unknown_formats(crd) if each not in known]
    return [f"unrecognized format {quoted(each)}" for each in new]


def _unknown_formats(crd: Plain) -> list[str]:
    schemas: list[Any] = []
    for version in crd["spec"].get("versions") or ():
        raw = (version.get("schema") or {}).get("openAPIV3Schema")
        if raw and raw not in schemas:
            schemas.append(raw)
    return [each for raw in schemas for each in _formats(raw)]


def _formats(raw: Mapping[str, Any]) -> Iterable[str]:
    form = raw.get("format") or ""
    if form and not formats.known(raw.get("type") or "", form):
        yield form
    for child in children(raw):
        yield from _formats(child)
