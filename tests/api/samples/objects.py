"""Objects of every built-in kind that between them set every field."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.api.samples.pods import HOST_POD, POD, POD_STATUS
from tests.api.samples.values import (
    INSTANT,
    LABELS,
    NAME,
    NOW,
    OBSERVED,
    ONE,
    READY,
    SELECTOR,
    UID,
)
from trimtab import kinds as k
from trimtab.api.conditions import Condition, Conditions
from trimtab.api.objects import Object
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Metadata, Resource
from trimtab.api.selectors import LabelSelector

TEMPLATE = k.PodTemplateSpec(
    metadata=Metadata(labels={"app": NAME, "tier": "front"}, annotations={"a": "b"}),
    spec=k.PodSpec(containers=[k.Container(name="web", image="web:1")]),
)
JOB_TEMPLATE = k.PodTemplateSpec(
    spec=k.PodSpec(
        containers=[k.Container(name="run", image="run:1")], restartPolicy="Never"
    )
)
SERVICE = k.ServiceSpec(
    selector=LABELS,
    ports=[
        k.ServicePort(
            name="http",
            port=80,
            protocol="TCP",
            targetPort="http",
            nodePort=30123,
            appProtocol="http",
        )
    ],
    type="LoadBalancer",
    clusterIP="10.0.0.123",
    clusterIPs=["10.0.0.123"],
    externalIPs=["192.0.2.1"],
    publishNotReadyAddresses=True,
    sessionAffinity="ClientIP",
    sessionAffinityConfig={"clientIP": {"timeoutSeconds": 60}},
    internalTrafficPolicy="Local",
    externalTrafficPolicy="Local",
    trafficDistribution="PreferSameZone",
    loadBalancerClass="example.com/balancer",
    loadBalancerIP="192.0.2.2",
    loadBalancerSourceRanges=["192.0.2.0/24"],
    allocateLoadBalancerNodePorts=True,
    healthCheckNodePort=30124,
    ipFamilies=["IPv4"],
    ipFamilyPolicy="SingleStack",
)
SERVICE_STATUS = k.ServiceStatus(
    loadBalancer=k.LoadBalancerStatus(
        ingress=[
            k.LoadBalancerIngress(ip="192.0.2.2", ipMode="VIP"),
            k.LoadBalancerIngress(hostname="example.com"),
        ]
    ),
    conditions=OBSERVED,
)
NAMESPACE_STATUS = k.NamespaceStatus(phase="Active", conditions=READY)
NODE = k.NodeSpec(
    taints=[
        k.Taint(key="a", value="b", effect="NoExecute", timeAdded=NOW),
    ],
    unschedulable=True,
    podCIDR="10.3.0.0/24",
    podCIDRs=["10.3.0.0/24"],
    providerID="example://one",
)
PEER = k.NetworkPolicyPeer(podSelector=SELECTOR, namespaceSelector=LabelSelector())
BLOCK = k.NetworkPolicyPeer(
    ipBlock=k.IPBlock(cidr="10.0.0.0/8", except_=["10.1.0.0/16"])
)
POLICY_PORT = k.NetworkPolicyPort(protocol="TCP", port=80, endPort=90)
NETWORK_POLICY = k.NetworkPolicySpec(
    podSelector=SELECTOR,
    policyTypes=["Ingress", "Egress"],
    ingress=[k.NetworkPolicyIngressRule(from_=[PEER, BLOCK], ports=[POLICY_PORT])],
    egress=[
        k.NetworkPolicyEgressRule(to=[PEER], ports=[k.NetworkPolicyPort(port="http")])
    ],
)
RULES = [
    k.PolicyRule(
        verbs=["get"], apiGroups=[""], resources=["pods"], resourceNames=["one"]
    )
]
URL_RULES = [k.PolicyRule(verbs=["get"], nonResourceURLs=["/healthz"])]
OLD_EVENT: dict[str, Any] = {
    "type": "Warning",
    "reason": "Late",
    "message": "It was late.",
    "count": 3,
    "firstTimestamp": NOW,
    "lastTimestamp": NOW,
    "source": k.EventSource(component="me", host="one"),
}
NEW_EVENT: dict[str, Any] = {
    "type": "Normal",
    "reason": "Late",
    "action": "Waited",
    "eventTime": INSTANT,
    "series": k.EventSeries(count=2, lastObservedTime=INSTANT),
    "reportingComponent": "example.com/me",
    "reportingInstance": "me-1",
}
REFERENCE = k.ObjectReference(
    apiVersion="v1",
    kind="Pod",
    namespace="default",
    name=NAME,
    uid=UID,
    resourceVersion="7",
    fieldPath="spec.containers{web}",
)
LIMITS = k.LimitRangeItem(
    type="Container",
    default={"cpu": ONE},
    defaultRequest={"cpu": ONE},
    max={"cpu": Quantity("2")},
    min={"cpu": Quantity("100m")},
    maxLimitRequestRatio={"cpu": Quantity("10")},
)
NODE_STATUS = k.NodeStatus(
    capacity={"cpu": Quantity("8"), "example.com/gpu": ONE},
    allocatable={"cpu": Quantity("7500m"), "example.com/gpu": ONE},
    conditions=READY,
    addresses=[k.NodeAddress(type="InternalIP", address="10.2.0.1")],
    nodeInfo=k.NodeSystemInfo(
        architecture="amd64",
        operatingSystem="linux",
        osImage="Some Linux",
        kernelVersion="6.1",
        kubeletVersion="v1.36.3",
        containerRuntimeVersion="containerd://2",
    ),
)
DEPLOYMENT = k.DeploymentSpec(
    replicas=0,
    selector=SELECTOR,
    template=TEMPLATE,
    strategy=k.DeploymentStrategy(
        type="RollingUpdate",
        rollingUpdate=k.RollingUpdateDeployment(maxUnavailable=0, maxSurge="25%"),
    ),
    minReadySeconds=5,
    revisionHistoryLimit=2,
    progressDeadlineSeconds=60,
    paused=True,
)
DEPLOYMENT_STATUS = k.DeploymentStatus(
    observedGeneration=1,
    replicas=4,
    updatedReplicas=3,
    readyReplicas=2,
    availableReplicas=2,
    unavailableReplicas=2,
    conditions=READY,
)
EXIT_CODES = {"containerName": "run", "operator": "In", "values": [3]}
JOB = k.JobSpec(
    template=JOB_TEMPLATE,
    parallelism=2,
    completions=3,
    completionMode="Indexed",
    backoffLimit=6,
    backoffLimitPerIndex=1,
    maxFailedIndexes=1,
    activeDeadlineSeconds=600,
    ttlSecondsAfterFinished=0,
    suspend=True,
    podFailurePolicy={"rules": [{"action": "FailJob", "onExitCodes": EXIT_CODES}]},
    successPolicy={"rules": [{"succeededIndexes": "0"}]},
    podReplacementPolicy="Failed",
    managedBy="example.com/runner",
)
JOB_STATUS = k.JobStatus(
    active=1,
    succeeded=1,
    failed=1,
    ready=1,
    terminating=0,
    startTime=NOW,
    completedIndexes="0",
    failedIndexes="1",
    conditions=READY,
)
JOB_DONE = k.JobStatus(
    succeeded=1,
    startTime=NOW,
    completionTime=NOW,
    conditions=Conditions(
        [
            Condition(type="SuccessCriteriaMet", status="True"),
            Condition(type="Complete", status="True"),
        ]
    ),
)
BUDGET = k.PodDisruptionBudgetSpec(
    minAvailable="50%", selector=SELECTOR, unhealthyPodEvictionPolicy="AlwaysAllow"
)
BUDGET_STATUS = k.PodDisruptionBudgetStatus(
    observedGeneration=1,
    disruptionsAllowed=1,
    currentHealthy=3,
    desiredHealthy=2,
    expectedPods=3,
    disruptedPods={"one": NOW},
    conditions=OBSERVED,
)
LEASE = k.LeaseSpec(
    holderIdentity="me",
    leaseDurationSeconds=15,
    acquireTime=INSTANT,
    renewTime=INSTANT,
    leaseTransitions=2,
    preferredHolder="you",
    strategy="OldestEmulationVersion",
)
SUBJECTS = [
    k.Subject(kind="ServiceAccount", name="default", namespace="default"),
    k.Subject(kind="Group", name="devs", apiGroup="rbac.authorization.k8s.io"),
]
ROLE_REF = k.RoleRef(kind="ClusterRole", name="view")

SPECS: list[tuple[type[Resource], Object, Object | None]] = [
    (k.Pod, POD, POD_STATUS),
    (k.Pod, HOST_POD, None),
    (k.Service, SERVICE, SERVICE_STATUS),
    (k.Service, k.ServiceSpec(type="ExternalName", externalName="example.com"), None),
    (k.Namespace, k.NamespaceSpec(finalizers=["kubernetes"]), NAMESPACE_STATUS),
    (k.Node, NODE, NODE_STATUS),
    (k.NetworkPolicy, NETWORK_POLICY, None),
    (k.LimitRange, k.LimitRangeSpec(limits=[LIMITS]), None),
    (k.Lease, LEASE, None),
    (k.Deployment, DEPLOYMENT, DEPLOYMENT_STATUS),
    (k.Job, JOB, JOB_STATUS),
    (k.Job, k.JobSpec(template=JOB_TEMPLATE, parallelism=1), JOB_DONE),
    (k.PodDisruptionBudget, BUDGET, BUDGET_STATUS),
    (k.PodDisruptionBudget, k.PodDisruptionBudgetSpec(maxUnavailable=1), None),
]
"""Kinds that have a spec, with a spec and perhaps a status of each."""


def plain(namespace: str) -> list[tuple[type[Resource], dict[str, Any]]]:
    """Kinds without a spec, and their fields."""
    about = msgspec.structs.replace(REFERENCE, namespace=namespace)
    return [
        (
            k.ConfigMap,
            {"data": {"a": "b"}, "binaryData": {"c": b"\xff"}, "immutable": True},
        ),
        (k.Secret, {"type": "Opaque", "data": {"a": b"\xff"}, "immutable": True}),
        (k.Secret, {"stringData": {"a": "b"}}),
        (
            k.ServiceAccount,
            {
                "secrets": [k.ObjectReference(name="token")],
                "imagePullSecrets": [k.LocalObjectReference(name="pull")],
                "automountServiceAccountToken": False,
            },
        ),
        (k.Role, {"rules": RULES}),
        (k.ClusterRole, {"rules": RULES + URL_RULES}),
        (
            k.ClusterRole,
            {"aggregationRule": k.AggregationRule(clusterRoleSelectors=[SELECTOR])},
        ),
        (k.RoleBinding, {"roleRef": ROLE_REF, "subjects": SUBJECTS}),
        (k.ClusterRoleBinding, {"roleRef": ROLE_REF, "subjects": SUBJECTS}),
        (k.Event, {"involvedObject": about, **OLD_EVENT}),
        (k.Event, {"involvedObject": about, "related": about, **NEW_EVENT}),
        (
            k.PriorityClass,
            {
                "value": -5,
                "description": "Last of all.",
                "globalDefault": False,
                "preemptionPolicy": "Never",
            },
        ),
    ]


def metadata(kind: type[Resource], *, name: str, namespace: str) -> Metadata:
    place = namespace if kind.__resource__.namespaced else ""
    return Metadata(name=name, namespace=place, labels=LABELS, annotations={"a": "b"})


def objects(name: str, *, namespace: str) -> list[Resource]:
    """All samples; ``name`` begins the names of all of them."""
    made = [
        (kind, {"spec": spec} | ({"status": status} if status else {}))
        for kind, spec, status in SPECS
    ]
    return [
        kind(
            metadata=metadata(kind, name=f"{name}-{number}", namespace=namespace),
            **fields,
        )
        for number, (kind, fields) in enumerate(made + plain(namespace))
    ]
