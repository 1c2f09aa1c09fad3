"""Indexes of Jobs, and the rules for what a Job's status may become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import meta
from trimtab.embedded.builtin.validation.problems import Found
from trimtab.embedded.builtin.validation.workloads import counts

JSON = Mapping[str, Any]
Interval = tuple[int, int]

_TERMINAL: Final = ("Failed", "Complete", "FailureTarget")


class _Wrong(Exception):
    pass


def _interval(text: str, completions: int) -> Interval:
    """``3`` or ``3-5``."""
    parts = text.split("-")
    if len(parts) > 2:
        raise _Wrong(
            f'the fragment "{text}" violates the requirement that an index interval '
            "can have at most two parts separated by '-'"
        )
    numbers = []
    for part in parts:
        if not part.isdecimal() or not part.isascii():
            raise _Wrong(f'cannot convert string to integer for index: "{part}"')
        if int(part) >= completions:
            raise _Wrong(f'too large index: "{part}"')
        numbers.append(int(part))
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise _Wrong(
            f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}"
        )
    return numbers[0], numbers[-1]


def count_indexes(text: str, completions: int) -> tuple[int, str]:
    """How many indexes a text such as ``1,3-5`` names, or what is wrong with it."""
    total, last = 0, -1
    try:
        for part in text.split(",") if text else ():
            low, high = _interval(part, completions)
            if last >= low:
                raise _Wrong(f"non-increasing order, previous: {last}, current: {low}")
            total, last = total + high - low + 1, high
    except _Wrong as wrong:
        return 0, str(wrong)
    return total, ""


def _intervals(text: str, completions: int) -> list[Interval]:
    found = []
    for part in text.split(",") if text else ():
        try:
            found.append(_interval(part, completions))
        except _Wrong:
            continue
    return found


def _is(job: JSON, kind: str) -> bool:
    return any(
        each["type"] == kind and each["status"] == "True"
        for each in job["status"].get("conditions") or ()
    )


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    """What a Job controller may report, seen what it reported before."""
    meta.updated(found, obj["metadata"], old["metadata"])
    new, before = obj["status"], old["status"]
    counts(found, new, "active", "succeeded", "failed", "ready", "terminating")
    _uncounted(found, new.get("uncountedTerminatedPods"))
    changed = {field: new.get(field) != before.get(field) for field in (*new, *before)}
    turned = {
        kind: _is(obj, kind) != _is(old, kind)
        for kind in (*_TERMINAL, "SuccessCriteriaMet")
    }
    _complete(found, obj, changed, turned)
    _finished(found, obj, changed, turned)
    _indexes(found, obj, changed)
    _rest(found, obj, changed)
    _backwards(found, obj, old, changed)


def _uncounted(found: Found, given: JSON | None) -> None:
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate((given or {}).get(field) or ()):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                found.invalid(path, uid, "must not be empty")
            elif uid in seen:
                found.duplicate(path, uid)
            seen.add(uid)


def _complete(
    found: Found, obj: JSON, changed: Mapping[str, bool], turned: Mapping[str, bool]
) -> None:
    status, path = obj["status"], "status.conditions"
    complete, failed = _is(obj, "Complete"), _is(obj, "Failed")
    target, met = _is(obj, "FailureTarget"), _is(obj, "SuccessCriteriaMet")
    if (turned["Complete"] or turned["Failed"]) and complete and failed:
        found.wrong(path, "cannot set Complete=True and Failed=true conditions")
    if (turned["Complete"] or turned["FailureTarget"]) and complete and target:
        found.wrong(path, "cannot set Complete=True and FailureTarget=true conditions")
    time, where = status.get("completionTime"), "status.completionTime"
    if turned["Complete"] or changed.get("completionTime"):
        if time is not None and not complete:
            detail = (
                "cannot set completionTime when there is no Complete=True condition"
            )
            found.invalid(where, time, detail)
        if time is None and complete:
            found.required(where, "completionTime is required for Complete jobs")
    start = status.get("startTime")
    timed = changed.get("startTime") or changed.get("completionTime")
    if timed and start is not None and time is not None and time < start:
        found.invalid(where, time, "must be equal to or after `startTime`")
    if (turned["Failed"] or changed.get("failedIndexes")) and failed and not target:
        detail = (
            "cannot set Failed=True condition without the FailureTarget=true condition"
        )
        found.wrong(path, detail)
    if (turned["Complete"] or turned["SuccessCriteriaMet"]) and complete and not met:
        detail = (
            "cannot set Complete=True condition without the SuccessCriteriaMet=true "
            "condition"
        )
        found.wrong(path, detail)


def _finished(
    found: Found, obj: JSON, changed: Mapping[str, bool], turned: Mapping[str, bool]
) -> None:
    status, spec = obj["status"], obj["spec"]
    if not (_is(obj, "Complete") or _is(obj, "Failed")):
        return
    ended = turned["Complete"] or turned["Failed"]
    active = status.get("active", 0)
    if (ended or changed.get("active")) and active > 0:
        found.invalid("status.active", active, "active>0 is invalid for finished job")
    waits = spec.get("suspend") and spec.get("completions") == 0
    if (ended or changed.get("startTime")) and "startTime" not in status and not waits:
        found.required("status.startTime", "startTime is required for finished job")
    left = status.get("uncountedTerminatedPods") or {}
    if (ended or changed.get("uncountedTerminatedPods")) and any(left.values()):
        shown = internal("batch.UncountedTerminatedPods", left)
        path = "status.uncountedTerminatedPods"
        found.invalid(path, shown, "must be empty for finished job")


def _indexes(found: Found, obj: JSON, changed: Mapping[str, bool]) -> None:
    status, spec = obj["status"], obj["spec"]
    completions = spec.get("completions")
    done, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    for field, text in (("completedIndexes", done), ("failedIndexes", failed or "")):
        if field == "failedIndexes" and "backoffLimitPerIndex" not in spec:
            continue
        if changed.get(field) and completions is not None:
            problem = count_indexes(text, completions)[1]
            if problem:
                detail = f"error parsing {field}: {problem}"
                found.invalid(f"status.{field}", text, detail)
    indexed = spec.get("completionMode") == "Indexed"
    if changed.get("completedIndexes") and done and not indexed:
        detail = (
            "cannot set non-empty completedIndexes when non-indexed completion mode"
        )
        found.invalid("status.completedIndexes", done, detail)
    if failed is None:
        return
    if changed.get("failedIndexes") and "backoffLimitPerIndex" not in spec:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        found.invalid("status.failedIndexes", failed, detail)
    if changed.get("failedIndexes") or changed.get("completedIndexes"):
        _overlap(found, done, failed, completions or 0)


def _overlap(found: Found, done: str, failed: str, completions: int) -> None:
    for low, high in _intervals(done, completions):
        for first, last in _intervals(failed, completions):
            if low <= last and first <= high:
                detail = (
                    "failedIndexes and completedIndexes overlap at index: "
                    f"{max(low, first)}"
                )
                found.invalid("status.failedIndexes", failed, detail)
                return


def _rest(found: Found, obj: JSON, changed: Mapping[str, bool]) -> None:
    status, path = obj["status"], "status.conditions"
    finished = _is(obj, "Complete") or _is(obj, "Failed")
    terminating = status.get("terminating") or 0
    if finished and terminating > 0:
        detail = "terminating>0 is invalid for finished job"
        found.invalid("status.terminating", terminating, detail)
    ready = status.get("ready")
    moved = changed.get("ready") or changed.get("active")
    if ready is not None and moved and ready > status.get("active", 0):
        detail = "cannot set more ready pods than active"
        found.invalid("status.ready", ready, detail)
    met = _is(obj, "SuccessCriteriaMet")
    for other, shown in (("Failed", "Failed"), ("FailureTarget", "FailureTarget")):
        if met and _is(obj, other):
            detail = f"cannot set SuccessCriteriaMet=True and {shown}=true conditions"
            found.wrong(path, detail)
    if "successPolicy" in obj["spec"] and not met and _is(obj, "Complete"):
        detail = (
            "cannot set Complete=True for Job with SuccessPolicy unless "
            "SuccessCriteriaMet=True"
        )
        found.wrong(path, detail)


def _backwards(found: Found, obj: JSON, old: JSON, changed: Mapping[str, bool]) -> None:
    """What has been counted or has ended stays so."""
    new, before, spec = obj["status"], old["status"], obj["spec"]
    path = "status.conditions"
    for kind in _TERMINAL:
        if _is(old, kind) and not _is(obj, kind):
            found.wrong(path, f"cannot disable the terminal {kind}=True condition")
    scales = spec.get("completionMode") == "Indexed" and spec.get(
        "completions"
    ) == spec.get("parallelism")
    for field in ("failed", "succeeded"):
        less = new.get(field, 0) < before.get(field, 0)
        if less and not (field == "succeeded" and scales):
            detail = f"cannot decrease the {field} counter"
            found.invalid(f"status.{field}", new.get(field, 0), detail)
    time, was = new.get("completionTime"), before.get("completionTime")
    if time is not None and was is not None and time != was:
        found.invalid("status.completionTime", time, "field is immutable")
    if "startTime" in before and changed.get("startTime") and not spec.get("suspend"):
        detail = "field is immutable for unsuspended job once set"
        found.invalid("status.startTime", new.get("startTime"), detail)
    if _is(old, "SuccessCriteriaMet") and not _is(obj, "SuccessCriteriaMet"):
        found.wrong(path, "cannot disable the SuccessCriteriaMet=True condition")
