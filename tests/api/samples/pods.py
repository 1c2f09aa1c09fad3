"""Pod specs and a pod status that between them set every field."""

from __future__ import annotations

from typing import Any

from tests.api.samples.values import LABELS, NAME, NOW, OBSERVED, ONE
from trimtab import kinds as k
from trimtab.api.quantity import Quantity


def field_ref(path: str) -> k.ObjectFieldSelector:
    return k.ObjectFieldSelector(apiVersion="v1", fieldPath=path)


def amount_ref(container: str) -> k.ResourceFieldSelector:
    return k.ResourceFieldSelector(
        containerName=container, resource="limits.cpu", divisor=Quantity("1m")
    )


ENVIRONMENT = [
    k.EnvVar(name="PLAIN", value="text"),
    k.EnvVar(name="NAME", valueFrom=k.EnvVarSource(fieldRef=field_ref("metadata.uid"))),
    k.EnvVar(name="CPU", valueFrom=k.EnvVarSource(resourceFieldRef=amount_ref("web"))),
    k.EnvVar(
        name="CONFIG",
        valueFrom=k.EnvVarSource(
            configMapKeyRef=k.ConfigMapKeySelector(name="c", key="a", optional=True)
        ),
    ),
    k.EnvVar(
        name="SECRET",
        valueFrom=k.EnvVarSource(
            secretKeyRef=k.SecretKeySelector(name="s", key="a", optional=True)
        ),
    ),
]
ENVIRONMENT_FROM = [
    k.EnvFromSource(
        prefix="A_", configMapRef=k.ConfigMapEnvSource(name="c", optional=True)
    ),
    k.EnvFromSource(secretRef=k.SecretEnvSource(name="s", optional=True)),
]
GET = k.HTTPGetAction(
    path="/ok",
    port="http",
    host="localhost",
    scheme="HTTPS",
    httpHeaders=[k.HTTPHeader(name="Accept", value="*/*")],
)
LIVENESS = k.Probe(
    httpGet=GET,
    initialDelaySeconds=1,
    periodSeconds=2,
    timeoutSeconds=3,
    successThreshold=1,
    failureThreshold=4,
    terminationGracePeriodSeconds=5,
)
MOUNTS = [
    k.VolumeMount(
        name="scratch", mountPath="/a", subPath="a", mountPropagation="HostToContainer"
    ),
    k.VolumeMount(
        name="secret",
        mountPath="/b",
        readOnly=True,
        recursiveReadOnly="IfPossible",
        subPathExpr="$(PLAIN)",
    ),
]
SECCOMP = k.SeccompProfile(type="Localhost", localhostProfile="profiles/one.json")
APPARMOR = k.AppArmorProfile(type="Localhost", localhostProfile="one")
SELINUX = k.SELinuxOptions(user="u", role="r", type="t", level="s0")
SECURITY = k.SecurityContext(
    runAsUser=1000,
    runAsGroup=1000,
    runAsNonRoot=True,
    readOnlyRootFilesystem=True,
    allowPrivilegeEscalation=False,
    privileged=False,
    capabilities=k.Capabilities(add=["NET_BIND_SERVICE"], drop=["ALL"]),
    seccompProfile=SECCOMP,
    appArmorProfile=APPARMOR,
    seLinuxOptions=SELINUX,
    procMount="Default",
)
RESOURCES = k.ResourceRequirements(
    limits={"cpu": ONE, "memory": Quantity("1Gi")},
    requests={"cpu": Quantity("250m"), "memory": Quantity("512Mi")},
    claims=[k.ResourceClaim(name="gpu", request="one")],
)
WEB = k.Container(
    name="web",
    image="web:1",
    imagePullPolicy="Always",
    command=["web"],
    args=["--fast"],
    workingDir="/srv",
    env=ENVIRONMENT,
    envFrom=ENVIRONMENT_FROM,
    ports=[k.ContainerPort(name="http", containerPort=8080, protocol="TCP")],
    resources=RESOURCES,
    volumeMounts=MOUNTS,
    livenessProbe=LIVENESS,
    readinessProbe=k.Probe(grpc=k.GRPCAction(port=9000, service="web")),
    startupProbe=k.Probe(tcpSocket=k.TCPSocketAction(port=8080, host="localhost")),
    lifecycle=k.Lifecycle(
        postStart=k.LifecycleHandler(exec=k.ExecAction(command=["true"])),
        preStop=k.LifecycleHandler(sleep=k.SleepAction(seconds=1)),
    ),
    securityContext=SECURITY,
    terminationMessagePath="/dev/end",
    terminationMessagePolicy="FallbackToLogsOnError",
    stdin=True,
    stdinOnce=True,
    tty=True,
)
SIDECAR = k.Container(
    name="sidecar",
    image="proxy:1",
    restartPolicy="Always",
    lifecycle=k.Lifecycle(
        postStart=k.LifecycleHandler(httpGet=k.HTTPGetAction(port=80, path="/")),
        preStop=k.LifecycleHandler(tcpSocket=k.TCPSocketAction(port="http")),
    ),
    livenessProbe=k.Probe(exec=k.ExecAction(command=["true"])),
)
FILES = [k.KeyToPath(key="a", path="b", mode=0o400)]
FACTS = [
    k.DownwardAPIVolumeFile(path="n", fieldRef=field_ref("metadata.name"), mode=0o400),
    k.DownwardAPIVolumeFile(path="c", resourceFieldRef=amount_ref("web")),
]
PROJECTIONS = [
    k.VolumeProjection(secret=k.SecretProjection(name="s", items=FILES, optional=True)),
    k.VolumeProjection(
        configMap=k.ConfigMapProjection(
            name="c", items=[k.KeyToPath(key="a", path="c")], optional=True
        )
    ),
    k.VolumeProjection(downwardAPI=k.DownwardAPIProjection(items=FACTS[:1])),
    k.VolumeProjection(
        serviceAccountToken=k.ServiceAccountTokenProjection(
            path="token", audience="me", expirationSeconds=3600
        )
    ),
]
CLAIM: dict[str, Any] = {
    "volumeClaimTemplate": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
    }
}
VOLUMES = [
    k.Volume(
        name="scratch",
        emptyDir=k.EmptyDirVolumeSource(medium="Memory", sizeLimit=Quantity("64Mi")),
    ),
    k.Volume(
        name="secret",
        secret=k.SecretVolumeSource(
            secretName="s", items=FILES, defaultMode=0o440, optional=True
        ),
    ),
    k.Volume(
        name="config",
        configMap=k.ConfigMapVolumeSource(
            name="c", items=FILES, defaultMode=0o440, optional=True
        ),
    ),
    k.Volume(
        name="mixed",
        projected=k.ProjectedVolumeSource(sources=PROJECTIONS, defaultMode=0o440),
    ),
    k.Volume(
        name="facts",
        downwardAPI=k.DownwardAPIVolumeSource(items=FACTS, defaultMode=0o440),
    ),
    k.Volume(
        name="host",
        hostPath=k.HostPathVolumeSource(path="/tmp", type="Directory"),
    ),
    k.Volume(
        name="claim",
        persistentVolumeClaim=k.PersistentVolumeClaimVolumeSource(
            claimName="data", readOnly=True
        ),
    ),
    k.Volume(name="own", ephemeral=CLAIM),
    k.Volume(
        name="nfs", nfs=k.NFSVolumeSource(server="files", path="/", readOnly=True)
    ),
    k.Volume(
        name="driver",
        csi=k.CSIVolumeSource(
            driver="files.example.com",
            readOnly=True,
            fsType="ext4",
            volumeAttributes={"a": "b"},
            nodePublishSecretRef=k.LocalObjectReference(name="s"),
        ),
    ),
    k.Volume(
        name="image", image=k.ImageVolumeSource(reference="a:1", pullPolicy="Always")
    ),
]
AFFINITY: dict[str, Any] = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": LABELS}, "topologyKey": "zone"}
        ]
    }
}
SPREAD: dict[str, Any] = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": LABELS},
}
POD_SECURITY = k.PodSecurityContext(
    runAsUser=1000,
    runAsGroup=1000,
    runAsNonRoot=True,
    fsGroup=1000,
    fsGroupChangePolicy="OnRootMismatch",
    supplementalGroups=[2000],
    seccompProfile=SECCOMP,
    appArmorProfile=APPARMOR,
    seLinuxOptions=SELINUX,
    sysctls=[k.Sysctl(name="net.ipv4.ip_unprivileged_port_start", value="80")],
)
POD = k.PodSpec(
    containers=[WEB],
    initContainers=[SIDECAR],
    volumes=VOLUMES,
    restartPolicy="Never",
    terminationGracePeriodSeconds=10,
    activeDeadlineSeconds=600,
    serviceAccountName="default",
    automountServiceAccountToken=False,
    imagePullSecrets=[k.LocalObjectReference(name="pull")],
    securityContext=POD_SECURITY,
    nodeName="one",
    nodeSelector={"disk": "fast"},
    affinity=AFFINITY,
    tolerations=[
        k.Toleration(
            key="a",
            operator="Equal",
            value="b",
            effect="NoExecute",
            tolerationSeconds=5,
        )
    ],
    topologySpreadConstraints=[SPREAD],
    schedulerName="other",
    priorityClassName="system-cluster-critical",
    priority=2_000_000_000,
    preemptionPolicy="PreemptLowerPriority",
    hostname="web",
    subdomain="sub",
    hostAliases=[k.HostAlias(ip="10.0.0.9", hostnames=["nine"])],
    dnsPolicy="None",
    dnsConfig={"nameservers": ["10.0.0.10"], "options": [{"name": "ndots"}]},
    hostUsers=False,
    shareProcessNamespace=True,
    enableServiceLinks=False,
    readinessGates=[k.PodReadinessGate(conditionType="example.com/open")],
    resourceClaims=[
        k.PodResourceClaim(name="gpu", resourceClaimName="gpu"),
        k.PodResourceClaim(name="more", resourceClaimTemplateName="more"),
    ],
    resources=k.ResourceRequirements(limits={"cpu": Quantity("4")}),
)
HOST_POD = k.PodSpec(
    containers=[
        k.Container(
            name="host",
            image="host:1",
            ports=[k.ContainerPort(containerPort=80, hostPort=80, hostIP="127.0.0.1")],
        )
    ],
    hostNetwork=True,
    hostPID=True,
    hostIPC=True,
    runtimeClassName=NAME,
    schedulingGates=[k.PodSchedulingGate(name="example.com/later")],
)
ENDED = k.ContainerStateTerminated(
    exitCode=137,
    signal=9,
    reason="OOMKilled",
    message="It was too big.",
    startedAt=NOW,
    finishedAt=NOW,
)
CONTAINER_STATUSES = [
    k.ContainerStatus(
        name="web",
        ready=True,
        restartCount=3,
        started=True,
        imageID="web@sha256:00",
        state=k.ContainerState(running=k.ContainerStateRunning(startedAt=NOW)),
        lastState=k.ContainerState(terminated=ENDED),
    )
]
SIDECAR_STATUSES = [
    k.ContainerStatus(
        name="sidecar",
        state=k.ContainerState(
            waiting=k.ContainerStateWaiting(reason="Slow", message="It is slow.")
        ),
    )
]
POD_STATUS = k.PodStatus(
    phase="Running",
    reason="Fine",
    message="It runs.",
    conditions=OBSERVED,
    containerStatuses=CONTAINER_STATUSES,
    initContainerStatuses=SIDECAR_STATUSES,
    ephemeralContainerStatuses=SIDECAR_STATUSES,
    podIP="10.1.0.1",
    hostIP="10.2.0.1",
    startTime=NOW,
    qosClass="Burstable",
)
