"""Access, budgets, priorities and leases."""

from __future__ import annotations

from collections.abc import Iterator

from hack.builtin_cases.case import GONE, JSON, Case, Variants, creates, updates

RBAC = "rbac.authorization.k8s.io"


RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


ROLE: JSON = {"metadata": {"name": "r"}, "rules": [RULE]}


ROLES: Variants = {
    "minimal": {},
    "no rules": {"rules": GONE},
    "empty rules": {"rules": []},
    "rule empty": {"rules": [{}]},
    "rule url": {"rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}]},
    "rule both": {"rules": [{**RULE, "nonResourceURLs": ["/x"]}]},
    "name": {"metadata/name": "system:A B"},
    "name slash": {"metadata/name": "a/b"},
    "name percent": {"metadata/name": "a%b"},
    "name dots": {"metadata/name": ".."},
}


CLUSTER_ROLES: Variants = {
    **ROLES,
    "aggregated": {
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    },
    "aggregation empty": {"aggregationRule": {}},
    "aggregation bad": {
        "aggregationRule": {
            "clusterRoleSelectors": [
                {"matchExpressions": [{"key": "a", "operator": "Nope"}]}
            ]
        }
    },
}


BINDING: JSON = {
    "metadata": {"name": "b"},
    "roleRef": {"kind": "ClusterRole", "name": "r"},
    "subjects": [{"kind": "User", "name": "u"}],
}


BINDINGS: Variants = {
    "minimal": {},
    "no subjects": {"subjects": GONE},
    "subjects": {
        "subjects": [
            {"kind": "Group", "name": "g"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "default"},
        ]
    },
    "subject bad": {
        "subjects": [
            {"kind": "Nope", "name": ""},
            {"kind": "ServiceAccount", "name": "A", "apiGroup": "x"},
            {"kind": "User", "name": "u", "apiGroup": "x"},
        ]
    },
    "role kind": {"roleRef/kind": "Role"},
    "role nonsense": {"roleRef": {"kind": "Nope", "name": "", "apiGroup": "x"}},
    "role name": {"roleRef/name": "a/b"},
    "no role": {"roleRef": GONE},
}


BINDING_UPDATES: Variants = {
    "subjects": {"subjects": [{"kind": "Group", "name": "g"}]},
    "role": {"roleRef/name": "other"},
    "role kind": {"roleRef/kind": "Role"},
}


BUDGET: JSON = {
    "metadata": {"name": "p"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
}


BUDGETS: Variants = {
    "minimal": {},
    "percent": {"spec/minAvailable": "50%"},
    "percent more": {"spec/minAvailable": "150%"},
    "nonsense": {"spec/minAvailable": "x"},
    "negative": {"spec/minAvailable": -1},
    "both": {"spec/maxUnavailable": 1},
    "no selector": {"spec/selector": GONE},
    "selector": {"spec/selector": {"matchLabels": {"a": "b c"}}},
    "empty": {"spec": {}},
    "eviction": {"spec/unhealthyPodEvictionPolicy": "Nope"},
    "name": {"metadata/name": "A_b"},
    "name slash": {"metadata/name": "a/b"},
    "status": {"status": {"currentHealthy": 3}},
}


BUDGET_STATUS: Variants = {
    "status": {"status/currentHealthy": 3, "status/disruptionsAllowed": 1},
    "negative": {"status/currentHealthy": -1, "status/expectedPods": -1},
    "conditions": {
        "status/conditions": [
            {
                "type": "A",
                "status": "Nope",
                "reason": "a b",
                "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            },
            {"type": "A", "status": "True", "reason": "", "message": ""},
        ]
    },
}


PRIORITY: JSON = {"metadata": {"name": "p"}, "value": 5}


PRIORITIES: Variants = {
    "minimal": {},
    "rich": {"globalDefault": True, "description": "d", "preemptionPolicy": "Never"},
    "no value": {"value": GONE},
    "large": {"value": 2000000000},
    "system": {"metadata/name": "system-mine"},
    "policy": {"preemptionPolicy": "Nope"},
}


PRIORITY_UPDATES: Variants = {
    "value": {"value": 6},
    "policy": {"preemptionPolicy": "Never"},
    "description": {"description": "x"},
}


LEASE: JSON = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "h"}}


LEASES: Variants = {
    "minimal": {},
    "empty": {"spec": GONE},
    "rich": {
        "spec": {
            "holderIdentity": "",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 0,
            "acquireTime": "2026-01-02T03:04:05.000000Z",
            "renewTime": "2026-01-02T03:04:05.123456+01:00",
        }
    },
    "strategy": {
        "spec": {"strategy": "OldestEmulationVersion", "preferredHolder": "h"}
    },
    "duration": {"spec/leaseDurationSeconds": 0},
    "transitions": {"spec/leaseTransitions": -1},
    "time": {"spec/renewTime": "2026-01-02T03:04:05Z"},
    "name": {"metadata/name": "A"},
}


RUNTIME: JSON = {"metadata": {"name": "r"}, "handler": "h"}


RUNTIMES: Variants = {
    "minimal": {},
    "rich": {
        "overhead": {"podFixed": {"cpu": "0.5"}},
        "scheduling": {
            "nodeSelector": {"a": "b"},
            "tolerations": [{"operator": "Exists"}],
        },
    },
    "no handler": {"handler": ""},
    "handler": {"handler": "A"},
    "overhead": {"overhead": {"podFixed": {"nope": "1"}}},
}


def cases() -> Iterator[Case]:
    yield from creates(f"{RBAC}/v1/Role", ROLE, ROLES)
    yield from updates(
        f"{RBAC}/v1/Role",
        ROLE,
        {"rules": {"rules": [{}]}, "more": {"rules": [RULE, RULE]}},
    )
    yield from creates(f"{RBAC}/v1/ClusterRole", ROLE, CLUSTER_ROLES)
    yield from creates(f"{RBAC}/v1/RoleBinding", BINDING, BINDINGS)
    yield from updates(f"{RBAC}/v1/RoleBinding", BINDING, BINDING_UPDATES)
    yield from creates(f"{RBAC}/v1/ClusterRoleBinding", BINDING, BINDINGS)
    yield from updates(f"{RBAC}/v1/ClusterRoleBinding", BINDING, BINDING_UPDATES)
    budget = "policy/v1/PodDisruptionBudget"
    yield from creates(budget, BUDGET, BUDGETS)
    yield from updates(
        budget,
        BUDGET,
        {"min": {"spec/minAvailable": 2}, "bad": {"spec/minAvailable": -2}},
    )
    yield from updates(budget, BUDGET, BUDGET_STATUS, subresource="status")
    priority = "scheduling.k8s.io/v1/PriorityClass"
    yield from creates(priority, PRIORITY, PRIORITIES)
    yield from updates(priority, PRIORITY, PRIORITY_UPDATES)
    lease = "coordination.k8s.io/v1/Lease"
    yield from creates(lease, LEASE, LEASES)
    yield from updates(
        lease,
        LEASE,
        {
            "holder": {"spec/holderIdentity": "x"},
            "bad": {"spec/leaseDurationSeconds": -1},
        },
    )
    runtime = "node.k8s.io/v1/RuntimeClass"
    yield from creates(runtime, RUNTIME, RUNTIMES)
    yield from updates(runtime, RUNTIME, {"handler": {"handler": "x"}})
