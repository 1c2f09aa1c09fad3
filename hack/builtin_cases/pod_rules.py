"""Pods to create: probes, restarts, placement and security."""

from __future__ import annotations

from typing import Any

from hack.builtin_cases.pod_bases import C0, TERM, affinity, probe, resources

VARIANTS: dict[str, dict[str, Any]] = {
    "probe without handler": {C0 + "livenessProbe": {}},
    "probe two handlers": probe(tcpSocket={"port": 1}),
    "probe negative": probe(periodSeconds=-1, timeoutSeconds=-2, failureThreshold=-1),
    "probe success": probe(successThreshold=2),
    "probe grace": probe(terminationGracePeriodSeconds=0),
    "readiness grace": {
        C0 + "readinessProbe": {
            "tcpSocket": {"port": 1},
            "terminationGracePeriodSeconds": 5,
        }
    },
    "probe command": {C0 + "livenessProbe": {"exec": {}}},
    "probe http": {
        C0 + "livenessProbe": {
            "httpGet": {
                "port": 0,
                "scheme": "FTP",
                "httpHeaders": [{"name": "a b", "value": "c"}],
            }
        }
    },
    "probe port name": {C0 + "livenessProbe": {"tcpSocket": {"port": "Not A Port"}}},
    "probe grpc": {C0 + "livenessProbe": {"grpc": {"port": 0}}},
    "lifecycle empty": {C0 + "lifecycle": {"preStop": {}}},
    "lifecycle sleep": {C0 + "lifecycle": {"preStop": {"sleep": {"seconds": 31}}}},
    "restart policy": {"spec/restartPolicy": "Sometimes"},
    "container restart policy": {C0 + "restartPolicy": "Nope"},
    "container restart rules": {
        C0 + "restartPolicyRules": [
            {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
        ]
    },
    "container restart rule bad": {
        C0 + "restartPolicy": "Never",
        C0 + "restartPolicyRules": [
            {"action": "Nope", "exitCodes": {"operator": "Is"}},
            {"action": "Restart"},
        ],
    },
    "init probe": {
        "spec/initContainers": [
            {
                "name": "i",
                "image": "a",
                "livenessProbe": {"exec": {"command": ["a"]}},
                "lifecycle": {"preStop": {"exec": {"command": ["a"]}}},
            }
        ]
    },
    "init name taken": {"spec/initContainers": [{"name": "web", "image": "a"}]},
    "init restart policy": {
        "spec/initContainers": [{"name": "i", "image": "a", "restartPolicy": "Nope"}]
    },
    "init resize": {
        "spec/initContainers": [
            {
                "name": "i",
                "image": "a",
                "resizePolicy": [
                    {"resourceName": "cpu", "restartPolicy": "RestartContainer"}
                ],
            }
        ]
    },
    "ephemeral on create": {"spec/ephemeralContainers": [{"name": "e", "image": "a"}]},
    "dns policy": {"spec/dnsPolicy": "Nope"},
    "dns none": {"spec/dnsPolicy": "None"},
    "dns none without servers": {"spec/dnsPolicy": "None", "spec/dnsConfig": {}},
    "dns config": {
        "spec/dnsConfig": {
            "nameservers": ["a", "1.1.1.1", "::1", "2.2.2.2"],
            "searches": ["ok_a.b.", "A B"],
            "options": [{}],
        }
    },
    "node selector": {"spec/nodeSelector": {"a b": "c d"}},
    "node name": {"spec/nodeName": "Not A Node"},
    "service account name": {"spec/serviceAccountName": "A"},
    "legacy service account": {"spec/serviceAccount": "old"},
    "both service accounts": {
        "spec/serviceAccount": "old",
        "spec/serviceAccountName": "new",
    },
    "deadline": {"spec/activeDeadlineSeconds": 0},
    "grace period negative": {"spec/terminationGracePeriodSeconds": -5},
    "hostname": {"spec/hostname": "A.b", "spec/subdomain": "c.d"},
    "hostname override": {
        "spec/hostnameOverride": "A",
        "spec/setHostnameAsFQDN": True,
    },
    "host alias": {"spec/hostAliases": [{"ip": "x", "hostnames": ["A"]}]},
    "priority class name": {"spec/priorityClassName": "A"},
    "runtime class": {"spec/runtimeClassName": "A"},
    "preemption policy": {"spec/preemptionPolicy": "Nope"},
    "overhead": {"spec/overhead": {"nope": "1"}},
    "os": {"spec/os": {"name": "beos"}},
    "os empty": {"spec/os": {}},
    "windows": {
        "spec/os": {"name": "windows"},
        "spec/securityContext": {"runAsUser": 1, "fsGroup": 1},
        C0 + "securityContext": {"privileged": True, "capabilities": {}},
    },
    "linux with windows options": {
        "spec/os": {"name": "linux"},
        "spec/securityContext": {"windowsOptions": {"runAsUserName": "a"}},
    },
    "toleration": {
        "spec/tolerations": [
            {"key": "a b"},
            {"operator": "Equal"},
            {"key": "a", "operator": "Nope"},
            {"key": "a", "operator": "Exists", "value": "v"},
            {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1},
            {"key": "a", "effect": "Nope"},
            {"key": "a", "value": "b c"},
            {"key": "a", "operator": "Gt", "value": "1"},
        ]
    },
    "affinity no terms": {TERM: []},
    "affinity operator": affinity(
        {
            "matchExpressions": [
                {"key": "a", "operator": "In"},
                {"key": "b", "operator": "Exists", "values": ["a"]},
                {"key": "c", "operator": "Gt", "values": ["1", "2"]},
                {"key": "d e", "operator": "Nope"},
                {"key": "f", "operator": "In", "values": ["g h"]},
            ]
        }
    ),
    "affinity field": affinity(
        {"matchFields": [{"key": "spec.a", "operator": "Exists"}]}
    ),
    "affinity weight": {
        "spec/affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 0, "preference": {}}
                ]
            }
        }
    },
    "pod affinity": {
        "spec/affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "", "namespaces": ["A"]},
                    {
                        "topologyKey": "a",
                        "labelSelector": {
                            "matchExpressions": [{"key": "a", "operator": "In"}]
                        },
                    },
                ],
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 101, "podAffinityTerm": {"topologyKey": "a"}}
                ],
            }
        }
    },
    "pod affinity label keys": {
        "spec/affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "a",
                        "matchLabelKeys": ["k", "k"],
                        "mismatchLabelKeys": ["k"],
                    },
                    {
                        "topologyKey": "a",
                        "labelSelector": {"matchLabels": {"x": "y"}},
                        "matchLabelKeys": ["x"],
                    },
                ],
            }
        }
    },
    "spread": {
        "spec/topologySpreadConstraints": [
            {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": ""},
            {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "Nope"},
            {
                "maxSkew": 1,
                "topologyKey": "a",
                "whenUnsatisfiable": "ScheduleAnyway",
                "minDomains": 2,
            },
            {
                "maxSkew": 1,
                "topologyKey": "b",
                "whenUnsatisfiable": "DoNotSchedule",
                "minDomains": 0,
                "nodeAffinityPolicy": "Nope",
                "matchLabelKeys": ["a"],
            },
            {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "Nope"},
        ]
    },
    "security context": {
        "spec/securityContext": {
            "runAsUser": -1,
            "runAsGroup": -1,
            "fsGroup": -1,
            "supplementalGroups": [-1],
            "fsGroupChangePolicy": "Nope",
            "seccompProfile": {"type": "Nope"},
            "sysctls": [{"name": "A B", "value": "1"}, {"name": "", "value": ""}],
        }
    },
    "seccomp localhost": {
        "spec/securityContext": {"seccompProfile": {"type": "Localhost"}}
    },
    "seccomp profile unasked": {
        "spec/securityContext": {
            "seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "a"}
        }
    },
    "apparmor": {
        "spec/securityContext": {"appArmorProfile": {"type": "Localhost"}},
        C0 + "securityContext": {"appArmorProfile": {"type": "Nope"}},
    },
    "container security": {
        C0 + "securityContext": {
            "runAsUser": -1,
            "privileged": True,
            "allowPrivilegeEscalation": False,
            "procMount": "Nope",
            "seccompProfile": {"type": ""},
        }
    },
    "share processes": {"spec/shareProcessNamespace": True, "spec/hostPID": True},
    "host users": {
        "spec/hostUsers": False,
        "spec/hostNetwork": True,
        "spec/hostPID": True,
        "spec/hostIPC": True,
    },
    "readiness gate": {"spec/readinessGates": [{"conditionType": "a b"}]},
    "scheduling gates": {
        "spec/schedulingGates": [{"name": "a b"}, {"name": "c"}, {"name": "c"}],
        "spec/nodeName": "n",
    },
    "gated": {"spec/schedulingGates": [{"name": "a"}]},
    "resource claims": {
        "spec/resourceClaims": [
            {"name": "a"},
            {"name": "a", "resourceClaimName": "b"},
            {"name": "B", "resourceClaimName": "C", "resourceClaimTemplateName": "d"},
            {},
        ]
    },
    "mirror": {"metadata/annotations": {"kubernetes.io/config.mirror": "a"}},
    "deletion cost": {
        "metadata/annotations": {"controller.kubernetes.io/pod-deletion-cost": "a"}
    },
    "seccomp annotation": {
        "metadata/annotations": {"seccomp.security.alpha.kubernetes.io/pod": "nope"}
    },
    "guaranteed": resources(
        {"cpu": "1", "memory": "1Gi"}, {"cpu": "1000m", "memory": "1024Mi"}
    ),
    "burstable": resources({"cpu": "1"}, None),
    "wrong type text": {C0 + "image": 5},
    "wrong type number": {"spec/terminationGracePeriodSeconds": "30"},
    "wrong type bool": {"spec/hostNetwork": "true"},
    "wrong type list": {"spec/containers": {}},
    "wrong type map": {"metadata/labels": ["a"]},
    "wrong type label": {"metadata/labels": {"a": 1}},
    "wrong type struct": {"spec": []},
    "wrong fraction": {"spec/priority": 1.5},
    "wrong range": {"spec/priority": 2**40},
    "wrong quantity": resources({"cpu": "lots"}, None),
    "wrong env": {C0 + "env": [{"name": "A", "value": True}]},
    "wrong port": {C0 + "livenessProbe": {"tcpSocket": {"port": True}}},
    "wrong time": {"metadata/creationTimestamp": "yesterday"},
}
