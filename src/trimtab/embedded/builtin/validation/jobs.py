"""Jobs: pods that end, so many of them and so many at a time."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import (
    failures,
    meta,
    podspec,
    selection,
    texts,
)
from trimtab.embedded.builtin.validation.problems import Found, sorted_map
from trimtab.embedded.builtin.validation.successes import count_indexes

JSON = Mapping[str, Any]

_MOST: Final = 100_000
_COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
)


def create(found: Found, obj: JSON) -> None:
    """A Job whose pods are found by labels that were made for it."""
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    spec = obj["spec"]
    if not spec.get("manualSelector"):
        _generated(found, obj, prefixed=True)
    _whole_spec(found, spec)
    _hostnames(found, obj)


def _hostnames(found: Found, obj: JSON) -> None:
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        last = f"{name}-{completions - 1}"
        if texts.label(last):
            detail = f"will not able to create pod with invalid DNS label: {last}"
            found.invalid("metadata.name", name, detail)


def _generated(found: Found, obj: JSON, *, prefixed: bool) -> None:
    """Labels and selector that the server makes are what it makes of them."""
    spec, metadata = obj["spec"], obj["metadata"]
    if spec.get("selector") is None:
        return
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    expected = {"controller-uid": uid, "job-name": name}
    if prefixed:
        expected["batch.kubernetes.io/controller-uid"] = uid
        expected["batch.kubernetes.io/job-name"] = name
    labels = spec["template"]["metadata"].get("labels") or {}
    for key, value in expected.items():
        path, detail = f"spec.template.metadata.labels[{key}]", f"must be '{value}'"
        if key not in labels:
            found.required(path, detail)
        elif labels[key] != value:
            found.invalid(path, sorted_map(labels), detail)
    selector = spec["selector"]
    if selection.is_sound(selector) and not selection.selects(selector, expected):
        shown = selection.printed(selector)
        found.invalid("spec.selector", shown, "`selector` not auto-generated")


def _whole_spec(found: Found, spec: JSON) -> None:
    job_spec(found, spec, "spec")
    if spec.get("selector") is None:
        found.required("spec.selector")
    else:
        meta.selector(found, spec["selector"], "spec.selector")
    selection.mismatch(found, spec)


def job_spec(found: Found, spec: JSON, path: str) -> None:
    """What is to be run how often, in a Job or in a template for one."""
    for field in _COUNTS:
        found.not_negative(f"{path}.{field}", spec.get(field))
    most = spec.get("maxFailedIndexes")
    if most is not None:
        found.not_negative(f"{path}.maxFailedIndexes", most)
        if "backoffLimitPerIndex" not in spec:
            detail = "when maxFailedIndexes is specified"
            found.required(f"{path}.backoffLimitPerIndex", detail)
    if "managedBy" in spec:
        _managed_by(found, spec["managedBy"], f"{path}.managedBy")
    _mode(found, spec, path)
    if "podFailurePolicy" in spec:
        failures.policy(found, spec, f"{path}.podFailurePolicy")
    if "successPolicy" in spec:
        _successes(found, spec, f"{path}.successPolicy")
    _replacement(found, spec, f"{path}.podReplacementPolicy")
    podspec.template(found, spec["template"], f"{path}.template")
    _restart(found, spec, f"{path}.template.spec.restartPolicy")


def _managed_by(found: Found, value: str, path: str) -> None:
    domain, slash, rest = value.partition("/")
    if not value:
        found.required(path)
    elif not slash or not domain or not rest:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        found.invalid(path, value, detail)
    else:
        found.each(path, domain, texts.subdomain(domain))
        if not texts.is_http_path(rest):
            found.invalid(path, rest, texts.HTTP_PATH)
    if len(value) > 63:
        found.too_long(path, 63)


def _mode(found: Found, spec: JSON, path: str) -> None:
    mode = spec.get("completionMode")
    if mode is not None:
        modes = ("NonIndexed", "Indexed")
        found.one_of(f"{path}.completionMode", mode, modes)
    if mode == "Indexed":
        _indexed(found, spec, path)
    if mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if field in spec:
                detail = "requires indexed completion mode"
                found.invalid(f"{path}.{field}", spec[field], detail)


def _indexed(found: Found, spec: JSON, path: str) -> None:
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    most = spec.get("maxFailedIndexes")
    if completions is None:
        detail = "when completion mode is Indexed"
        found.required(f"{path}.completions", detail)
    if parallelism > _MOST:
        detail = (
            f"must be less than or equal to {_MOST} when completion mode is Indexed"
        )
        found.invalid(f"{path}.parallelism", parallelism, detail)
    if completions is not None and most is not None and most > completions:
        detail = "must be less than or equal to completions"
        found.invalid(f"{path}.maxFailedIndexes", most, detail)
    if most is not None and most > _MOST:
        detail = f"must be less than or equal to {_MOST}"
        found.invalid(f"{path}.maxFailedIndexes", most, detail)
    if (completions or 0) > _MOST and "backoffLimitPerIndex" in spec:
        _many(found, most, parallelism, path)


def _many(found: Found, most: int | None, parallelism: int, path: str) -> None:
    if most is None:
        detail = f"must be specified when completions is above {_MOST}"
        found.required(f"{path}.maxFailedIndexes", detail)
    detail = (
        f"must be less than or equal to 10000 when completions are above {_MOST} and "
        "used with backoff limit per index"
    )
    if parallelism > 10_000:
        found.invalid(f"{path}.parallelism", parallelism, detail)
    if most is not None and most > 10_000:
        found.invalid(f"{path}.maxFailedIndexes", most, detail)


def _successes(found: Found, spec: JSON, path: str) -> None:
    """When a Job counts as done before all of it is."""
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        shown = internal("batch.SuccessPolicy", policy)
        found.invalid(path, shown, "requires indexed completion mode")
        return
    rules = policy["rules"] or ()
    if not rules:
        detail = (
            "at least one rules must be specified when the successPolicy is specified"
        )
        found.required(f"{path}.rules", detail)
    if len(rules) > 20:
        found.too_many(f"{path}.rules", len(rules), 20)
    for index, rule in enumerate(rules):
        _success(found, rule, spec.get("completions") or 0, f"{path}.rules[{index}]")


def _success(found: Found, rule: JSON, completions: int, path: str) -> None:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        found.required(path, detail)
    total = 0
    if indexes is not None:
        total, problem = count_indexes(indexes, completions)
        if problem:
            detail = f"error parsing succeededIndexes: {problem}"
            found.invalid(f"{path}.succeededIndexes", indexes, detail)
    if count is None:
        return
    where, least = f"{path}.succeededCount", "must be less than or equal to"
    found.not_negative(where, count)
    if count > completions:
        detail = f"{least} {completions} (the number of specified completions)"
        found.invalid(where, count, detail)
    if indexes is not None and count > total:
        detail = (
            f"{least} {total} (the number of indexes in the specified "
            "succeededIndexes field)"
        )
        found.invalid(where, count, detail)


def _replacement(found: Found, spec: JSON, path: str) -> None:
    policy = spec.get("podReplacementPolicy")
    if policy is not None:
        failing = "podFailurePolicy" in spec
        allowed = ("Failed",) if failing else ("Failed", "TerminatingOrFailed")
        found.one_of(path, policy, allowed)


def _restart(found: Found, spec: JSON, path: str) -> None:
    restart = spec["template"]["spec"].get("restartPolicy", "")
    if restart in ("", "Always"):
        found.required(path, 'valid values: "OnFailure", "Never"')
    elif restart not in ("OnFailure", "Never"):
        found.unsupported(path, restart, ("OnFailure", "Never"))
    elif "podFailurePolicy" in spec and restart != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        found.invalid(path, restart, detail)


def update(found: Found, obj: JSON, old: JSON) -> None:
    """The work of a Job cannot change; how much of it at once can."""
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    spec, before = obj["spec"], old["spec"]
    if not spec.get("manualSelector"):
        labels = before["template"]["metadata"].get("labels") or {}
        prefix = "batch.kubernetes.io/"
        known = f"{prefix}job-name" in labels and f"{prefix}controller-uid" in labels
        _generated(found, obj, prefixed=known)
    _whole_spec(found, spec)
    _hostnames(found, obj)
    meta.updated(found, obj["metadata"], old["metadata"])
    _whole_spec(found, spec)
    _completions(found, spec, before)
    selector, was = spec.get("selector"), before.get("selector")
    shown = None if selector is None else selection.printed(selector)
    found.immutable("spec.selector", selector, was, shown)
    _template(found, spec, old)
    for field, shape in (
        ("completionMode", ""),
        ("podFailurePolicy", "batch.PodFailurePolicy"),
        ("backoffLimitPerIndex", ""),
        ("managedBy", ""),
        ("successPolicy", "batch.SuccessPolicy"),
    ):
        new = spec.get(field)
        printed = internal(shape, new) if shape else None
        found.immutable(f"spec.{field}", new, before.get(field), printed)


def _completions(found: Found, spec: JSON, before: JSON) -> None:
    new, path = spec.get("completions"), "spec.completions"
    if spec.get("completionMode") != "Indexed":
        found.immutable(path, new, before.get("completions"))
    elif new not in (None, before.get("completions"), spec.get("parallelism")):
        detail = "can only be modified in tandem with spec.parallelism"
        found.invalid(path, new, detail)


def _template(found: Found, spec: JSON, old: JSON) -> None:
    """Pods cannot change, but while a Job waits, where they run and what they get."""
    before, status = old["spec"], old["status"]
    new, was = spec["template"], copy.deepcopy(before["template"])
    waits = bool(before.get("suspend"))
    suspended = any(
        each["type"] == "Suspended" and each["status"] == "True"
        for each in status.get("conditions") or ()
    )
    loose = waits and ("startTime" not in status or suspended)
    if loose and not status.get("active"):
        _placement(new, was)
        _resources(new["spec"], was["spec"])
        shown: Any = internal("core.PodSpec", new["spec"])
        found.immutable("spec.template.spec", new["spec"], was["spec"], shown)
        return
    shown = internal("core.PodTemplateSpec", new)
    found.immutable("spec.template", new, was, shown)


def _placement(new: JSON, was: dict[str, Any]) -> None:
    for place, fields in (
        ("metadata", ("annotations", "labels")),
        ("spec", ("nodeSelector", "tolerations", "schedulingGates")),
    ):
        for field in fields:
            was[place].pop(field, None)
            if field in new[place]:
                was[place][field] = new[place][field]
    affinity = {
        **{
            key: value
            for key, value in (was["spec"].get("affinity") or {}).items()
            if key != "nodeAffinity"
        },
        **{
            key: value
            for key, value in (new["spec"].get("affinity") or {}).items()
            if key == "nodeAffinity"
        },
    }
    was["spec"].pop("affinity", None)
    if affinity or "affinity" in new["spec"]:
        was["spec"]["affinity"] = affinity


def _resources(new: JSON, was: dict[str, Any]) -> None:
    for kind in ("containers", "initContainers"):
        mine, theirs = new.get(kind) or (), was.get(kind) or ()
        if len(mine) == len(theirs):
            for each, before in zip(mine, theirs, strict=True):
                if each["name"] == before["name"]:
                    before["resources"] = each["resources"]
