"""Jobs and CronJobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.builtin_cases.case import GONE, JSON, Case, changed, creates, updates

JOB: JSON = {
    "metadata": {"name": "job"},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "busybox"}],
            }
        }
    },
}


CODES = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}


JOBS: dict[str, dict[str, Any]] = {
    "minimal": {},
    "labels": {"spec/template/metadata": {"labels": {"a": "b"}}},
    "own labels": {
        "metadata/labels": {"x": "y"},
        "spec/template/metadata": {"labels": {"a": "b"}},
    },
    "restart always": {"spec/template/spec/restartPolicy": GONE},
    "restart nonsense": {"spec/template/spec/restartPolicy": "Nope"},
    "on failure": {"spec/template/spec/restartPolicy": "OnFailure"},
    "completions": {"spec/completions": 3},
    "parallelism": {"spec/parallelism": 3},
    "negative": {
        "spec/completions": -1,
        "spec/parallelism": -1,
        "spec/backoffLimit": -1,
        "spec/activeDeadlineSeconds": -1,
        "spec/ttlSecondsAfterFinished": -1,
    },
    "indexed": {"spec/completionMode": "Indexed", "spec/completions": 2},
    "indexed without": {"spec/completionMode": "Indexed", "spec/parallelism": 2},
    "mode": {"spec/completionMode": "Nope"},
    "index limit": {"spec/backoffLimitPerIndex": 1, "spec/maxFailedIndexes": 1},
    "max failed": {"spec/maxFailedIndexes": 1},
    "index backoff": {
        "spec/completionMode": "Indexed",
        "spec/completions": 2,
        "spec/backoffLimitPerIndex": 1,
        "spec/maxFailedIndexes": 5,
    },
    "suspended": {"spec/suspend": True},
    "own selector": {
        "spec/manualSelector": True,
        "spec/selector": {"matchLabels": {"a": "b"}},
        "spec/template/metadata": {"labels": {"a": "b"}},
    },
    "own selector mismatch": {
        "spec/manualSelector": True,
        "spec/selector": {"matchLabels": {"a": "b"}},
    },
    "own selector missing": {"spec/manualSelector": True},
    "selector unasked": {"spec/selector": {"matchLabels": {"a": "b"}}},
    "wrong label": {"spec/template/metadata": {"labels": {"job-name": "other"}}},
    "managed by": {"spec/managedBy": "nope"},
    "managed by long": {"spec/managedBy": "example.com/" + "a" * 60},
    "managed by good": {"spec/managedBy": "example.com/a"},
    "replacement": {"spec/podReplacementPolicy": "Nope"},
    "failure policy": {"spec/podFailurePolicy": {"rules": [CODES]}},
    "failure policy restart": {
        "spec/podFailurePolicy": {"rules": [CODES]},
        "spec/template/spec/restartPolicy": "OnFailure",
    },
    "failure policy bad": {
        "spec/podFailurePolicy": {
            "rules": [
                {"action": ""},
                {"action": "FailIndex", "onPodConditions": [{"type": "a b"}]},
                {
                    "action": "Nope",
                    "onExitCodes": {
                        "operator": "In",
                        "values": [2, 0, 2],
                        "containerName": "x",
                    },
                    "onPodConditions": [{"type": "A", "status": "Maybe"}],
                },
                {"action": "Count", "onExitCodes": {"operator": ""}},
            ]
        },
        "spec/podReplacementPolicy": "TerminatingOrFailed",
    },
    "success policy": {
        "spec/completionMode": "Indexed",
        "spec/completions": 5,
        "spec/successPolicy": {
            "rules": [{"succeededIndexes": "0-2", "succeededCount": 2}]
        },
    },
    "success policy bad": {
        "spec/completionMode": "Indexed",
        "spec/completions": 5,
        "spec/successPolicy": {
            "rules": [
                {},
                {"succeededIndexes": "7"},
                {"succeededIndexes": "2-1"},
                {"succeededIndexes": "1,1"},
                {"succeededIndexes": "a"},
                {"succeededIndexes": "1-2-3"},
                {"succeededCount": 9},
                {"succeededIndexes": "0-1", "succeededCount": 3},
            ]
        },
    },
    "success policy empty": {
        "spec/completionMode": "Indexed",
        "spec/completions": 5,
        "spec/successPolicy": {"rules": []},
    },
    "success policy unindexed": {
        "spec/successPolicy": {"rules": [{"succeededCount": 1}]}
    },
    "long name": {
        "metadata/name": "a" * 63,
        "spec/completionMode": "Indexed",
        "spec/completions": 1,
    },
    "name": {"metadata/name": "A"},
    "status is dropped": {"status": {"active": 3}},
    "no template": {"spec/template": GONE},
}


JOB_UPDATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "parallelism": {"spec/parallelism": 3},
    "completions": {"spec/completions": 3},
    "suspend": {"spec/suspend": True},
    "image": {"spec/template/spec/containers/0/image": "other"},
    "selector": {"spec/selector/matchLabels/a": "b"},
    "ttl": {"spec/ttlSecondsAfterFinished": 5},
    "backoff": {"spec/backoffLimit": 1},
    "mode": {"spec/completionMode": "Indexed"},
    "managed by": {"spec/managedBy": "example.com/a"},
    "failure policy": {"spec/podFailurePolicy": {"rules": [CODES]}},
    "template label": {"spec/template/metadata/labels/a": "b"},
    "status is kept": {"status": {"active": 3}},
    "labels": {"metadata/labels": {"a": "b"}},
}


SUSPENDED_UPDATES: dict[str, dict[str, Any]] = {
    "node selector": {"spec/template/spec/nodeSelector": {"a": "b"}},
    "affinity": {"spec/template/spec/affinity": {"nodeAffinity": {}}},
    "tolerations": {"spec/template/spec/tolerations": [{"operator": "Exists"}]},
    "resources": {
        "spec/template/spec/containers/0/resources": {"requests": {"cpu": "1"}}
    },
    "image": {"spec/template/spec/containers/0/image": "other"},
    "resume": {"spec/suspend": False},
    "template annotation": {"spec/template/metadata/annotations": {"a": "b"}},
}


NOW = "2026-01-02T03:04:05Z"


def condition(*kinds: str) -> list[JSON]:
    return [
        {
            "type": kind,
            "status": "True",
            "lastProbeTime": NOW,
            "lastTransitionTime": NOW,
        }
        for kind in kinds
    ]


JOB_STATUS: dict[str, dict[str, Any]] = {
    "active": {"status/active": 1, "status/startTime": NOW, "status/ready": 1},
    "complete": {
        "status/startTime": NOW,
        "status/completionTime": NOW,
        "status/succeeded": 1,
        "status/conditions": condition("SuccessCriteriaMet", "Complete"),
    },
    "complete without time": {"status/conditions": condition("Complete")},
    "failed": {
        "status/startTime": NOW,
        "status/failed": 1,
        "status/conditions": condition("FailureTarget", "Failed"),
    },
    "failed without target": {"status/conditions": condition("Failed")},
    "both": {
        "status/startTime": NOW,
        "status/completionTime": "2025-01-02T03:04:05Z",
        "status/conditions": condition(
            "Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"
        ),
    },
    "finished and active": {
        "status/startTime": NOW,
        "status/active": 2,
        "status/terminating": 1,
        "status/conditions": condition("FailureTarget", "Failed"),
    },
    "time without": {"status/completionTime": NOW},
    "ready": {"status/ready": 2, "status/active": 1},
    "negative": {"status/active": -1, "status/failed": -1},
    "indexes": {"status/completedIndexes": "0", "status/failedIndexes": "0"},
    "uncounted": {
        "status/uncountedTerminatedPods": {"succeeded": ["a", "a", ""], "failed": ["a"]}
    },
}


WAS_FAILED = {
    "status/startTime": NOW,
    "status/failed": 2,
    "status/succeeded": 2,
    "status/conditions": condition("FailureTarget", "Failed"),
}


JOB_STATUS_AFTER: dict[str, dict[str, Any]] = {
    "condition gone": {"status/conditions": []},
    "counters": {"status/failed": 1, "status/succeeded": 1},
    "start": {"status/startTime": "2026-02-02T03:04:05Z"},
}


CRON: JSON = {
    "metadata": {"name": "cron"},
    "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": JOB["spec"]}},
}


CRONS: dict[str, dict[str, Any]] = {
    "minimal": {},
    "rich": {
        "spec/timeZone": "Europe/Berlin",
        "spec/concurrencyPolicy": "Forbid",
        "spec/startingDeadlineSeconds": 10,
        "spec/suspend": True,
        "spec/jobTemplate/metadata": {"labels": {"a": "b"}},
        "spec/jobTemplate/spec/backoffLimit": 3,
    },
    "no schedule": {"spec/schedule": ""},
    **{
        f"schedule {text}": {"spec/schedule": text}
        for text in (
            "@hourly",
            "@every 1h",
            "@every x",
            "@nope",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 7",
            "* * * jan-mar mon,fri",
            "a * * * *",
            "1-0 * * * *",
            "1-2-3 * * * *",
            "*/0 * * * *",
            "*/5/5 * * * *",
            "5/15 1-3/2 ? * *",
            "-1 * * * *",
            "TZ=UTC * * * * *",
            "CRON_TZ=UTC 5 * * * *",
        )
    },
    "zone": {"spec/timeZone": "Nowhere/Town"},
    "zone empty": {"spec/timeZone": ""},
    "zone local": {"spec/timeZone": "Local"},
    "zone strange": {"spec/timeZone": "../etc"},
    "policy": {"spec/concurrencyPolicy": "Nope"},
    "deadline": {"spec/startingDeadlineSeconds": -1},
    "history": {
        "spec/successfulJobsHistoryLimit": -1,
        "spec/failedJobsHistoryLimit": -1,
    },
    "selector": {
        "spec/jobTemplate/spec/selector": {"matchLabels": {"a": "b"}},
        "spec/jobTemplate/spec/manualSelector": True,
    },
    "restart": {"spec/jobTemplate/spec/template/spec/restartPolicy": "Always"},
    "long name": {"metadata/name": "a" * 53},
    "no containers": {"spec/jobTemplate/spec/template/spec/containers": []},
}


CRON_UPDATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "schedule": {"spec/schedule": "1 1 1 1 1"},
    "bad schedule": {"spec/schedule": "x"},
    "suspend": {"spec/suspend": True},
    "image": {"spec/jobTemplate/spec/template/spec/containers/0/image": "b"},
    "status is kept": {"status": {"lastScheduleTime": NOW}},
}


def cases() -> Iterator[Case]:
    yield from creates("batch/v1/Job", JOB, JOBS)
    yield from updates("batch/v1/Job", JOB, JOB_UPDATES)
    suspended = changed(JOB, {"spec/suspend": True})
    yield from updates("batch/v1/Job", suspended, SUSPENDED_UPDATES)
    yield from updates("batch/v1/Job", JOB, JOB_STATUS, subresource="status")
    yield from updates(
        "batch/v1/Job",
        JOB,
        JOB_STATUS_AFTER,
        subresource="status",
        status=WAS_FAILED,
    )
    yield from creates("batch/v1/CronJob", CRON, CRONS)
    yield from updates("batch/v1/CronJob", CRON, CRON_UPDATES)
    yield from updates(
        "batch/v1/CronJob",
        CRON,
        {"status": {"status/lastScheduleTime": NOW, "spec/suspend": True}},
        subresource="status",
    )
