"""Webhook configurations: who is asked before an object is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded import addresses
from trimtab.embedded.addresses import AddressError
from trimtab.embedded.builtin.validation import meta, texts
from trimtab.embedded.builtin.validation.matchconditions import (
    conditions as match_conditions,
)
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_FORM: Final = "; desired format: https://host[/path]"
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_VERSIONS: Final = ("v1", "v1beta1")


def create(found: Found, obj: JSON) -> None:
    _create(found, obj, old=None)


def _create(found: Found, obj: JSON, old: JSON | None) -> None:
    meta.created(
        found,
        obj["metadata"],
        namespaced=False,
        name=texts.subdomain,
        qualified=False,
    )
    hooks, names = obj.get("webhooks") or [], set[str]()
    given = [hook.get("matchConditions") for hook in hooks]
    before = (old or {}).get("webhooks") or []
    same = old and [hook.get("matchConditions") for hook in before] == given
    for index, hook in enumerate(hooks):
        path = f"webhooks[{index}]"
        _hook(found, hook, path)
        if not same:
            match_conditions(
                found, given[index] or [], f"{path}.matchConditions", params=False
            )
        _versions(found, hook["admissionReviewVersions"] or [], path)
        name = hook["name"]
        if name and name in names:
            found.duplicate(f"{path}.name", name)
        names.add(name)


def update(found: Found, obj: JSON, old: JSON) -> None:
    _create(found, obj, old)


def _hook(found: Found, hook: JSON, path: str) -> None:
    _qualified(found, hook["name"], f"{path}.name")
    for index, each in enumerate(hook.get("rules") or ()):
        rule(found, each, f"{path}.rules[{index}]")
    for field, allowed in (
        ("failurePolicy", ("Fail", "Ignore")),
        ("matchPolicy", ("Equivalent", "Exact")),
    ):
        if field in hook:
            found.one_of(f"{path}.{field}", hook[field], allowed)
    effects = hook.get("sideEffects")
    if effects is None:
        detail = f"must specify one of {', '.join(_SIDE_EFFECTS)}"
        found.required(f"{path}.sideEffects", detail)
    else:
        found.one_of(f"{path}.sideEffects", effects, _SIDE_EFFECTS)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        found.invalid(f"{path}.timeoutSeconds", seconds, detail)
    for field in ("namespaceSelector", "objectSelector"):
        meta.selector(found, hook.get(field), f"{path}.{field}")
    if "reinvocationPolicy" in hook:
        policy = hook["reinvocationPolicy"]
        found.one_of(f"{path}.reinvocationPolicy", policy, ("IfNeeded", "Never"))
    _client(found, hook["clientConfig"], f"{path}.clientConfig")


def _qualified(found: Found, name: str, path: str) -> None:
    if not name:
        found.required(path)
        return
    if problems := texts.subdomain(name):
        found.invalid(path, name, ",".join(problems))
    elif name.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        found.invalid(path, name, detail)


def rule(found: Found, rule: JSON, path: str) -> None:
    """Which requests are meant, by webhooks and by policies."""
    operations = rule.get("operations") or []
    if not operations:
        found.required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        detail = "if '*' is present, must not specify other operations"
        found.invalid(f"{path}.operations", operations, detail)
    for index, each in enumerate(operations):
        found.one_of(f"{path}.operations[{index}]", each, _OPERATIONS)
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field) or []
        if not values:
            found.required(f"{path}.{field}")
        if len(values) > 1 and "*" in values:
            detail = f"if '*' is present, must not specify other {what}"
            found.invalid(f"{path}.{field}", values, detail)
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            found.required(f"{path}.apiVersions[{index}]")
    _resources(found, rule.get("resources") or [], f"{path}.resources")
    if "scope" in rule:
        scopes = ("*", "Cluster", "Namespaced")
        found.one_of(f"{path}.scope", rule["scope"], scopes)


def _resources(found: Found, given: list[str], path: str) -> None:
    if not given:
        found.required(path)
    wild_of: set[str] = set()
    wild_in: set[str] = set()
    plain = False
    for index, each in enumerate(given):
        if not each:
            found.required(f"{path}[{index}]")
            continue
        resource, slash, part = each.partition("/")
        if not slash:
            plain = each != "*"
            continue
        if resource in wild_of:
            detail = f"if '{resource}/*' is present, must not specify {each}"
            found.invalid(f"{path}[{index}]", each, detail)
        if part in wild_in:
            detail = f"if '*/{part}' is present, must not specify {each}"
            found.invalid(f"{path}[{index}]", each, detail)
        if part == "*":
            wild_of.add(resource)
        if resource == "*":
            wild_in.add(part)
    if len(given) > 1 and "*/*" in given:
        detail = "if '*/*' is present, must not specify other resources"
        found.invalid(path, given, detail)
    if "*" in given and plain:
        detail = (
            "if '*' is present, must not specify other resources without subresources"
        )
        found.invalid(path, given, detail)


def _client(found: Found, given: JSON, path: str) -> None:
    url, service = given.get("url"), given.get("service")
    if (url is None) == (service is None):
        found.required(path, "exactly one of url or service is required")
    elif url is not None:
        _url(found, url, f"{path}.url")
    elif service is not None:
        _service(found, service, f"{path}.service")


def _url(found: Found, text: str, path: str) -> None:
    try:
        url = addresses.url(text)
    except AddressError as error:
        found.required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if url.scheme != "https":
        detail = f"'https' is the only allowed URL scheme{_FORM}"
        found.invalid(path, url.scheme, detail)
    if not url.host:
        found.invalid(path, "", f"host must be specified{_FORM}")
    for value, what in (
        (url.user, "user information is"),
        (url.fragment, "fragments are"),
        (url.query, "query parameters are"),
    ):
        if value:
            found.invalid(path, value, f"{what} not permitted in the URL")


def _service(found: Found, service: JSON, path: str) -> None:
    # The real server takes one for the other here, so the order is this.
    if not service["namespace"]:
        found.required(f"{path}.name")
    if not service["name"]:
        found.required(f"{path}.namespace")
    port = service.get("port", 0)
    if not 1 <= port <= 65535:
        found.invalid(f"{path}.port", port, f"port is not valid: {texts.PORT_RANGE}")
    place = service.get("path")
    if place and place != "/":
        _path(found, place, f"{path}.path")


def _path(found: Found, place: str, path: str) -> None:
    if place == "//":
        found.invalid(path, place, "segment[0] may not be empty")
        return
    if not place.startswith("/"):
        found.invalid(path, place, "must start with a '/'")
    for index, step in enumerate(place[1:].removesuffix("/").split("/")):
        if not step:
            found.invalid(path, place, f"segment[{index}] may not be empty")
            continue
        for problem in texts.subdomain(step):
            found.invalid(path, place, f"segment[{index}]: {problem}")


def _versions(found: Found, versions: list[str], path: str) -> None:
    where, accepted = f"{path}.admissionReviewVersions", ", ".join(_VERSIONS)
    if not versions:
        found.required(where, f"must specify one of {accepted}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            found.invalid(f"{where}[{index}]", version, "duplicate version")
            continue
        found.each(f"{where}[{index}]", version, texts.label_1035(version))
    if not set(versions) & set(_VERSIONS):
        found.invalid(where, versions, f"must include at least one of {accepted}")
