"""Containers: what one process of a pod runs, with what, and how it is watched."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.api.objects import Object, field
from trimtab.api.quantity import Quantity


class ContainerPort(Object):
    """A port that the container listens on."""

    containerPort: int
    name: str = ""
    protocol: str = ""
    hostPort: int | None = None
    hostIP: str = ""


class ObjectFieldSelector(Object):
    """A field of the pod itself, such as ``metadata.name``."""

    fieldPath: str
    apiVersion: str = ""


class ResourceFieldSelector(Object):
    """A resource amount of a container, such as ``limits.cpu``."""

    resource: str
    containerName: str = ""
    divisor: Quantity | None = None


class ConfigMapKeySelector(Object):
    """One key of a ConfigMap."""

    key: str
    name: str = ""
    optional: bool | None = None


class SecretKeySelector(Object):
    """One key of a Secret."""

    key: str
    name: str = ""
    optional: bool | None = None


class EnvVarSource(Object):
    """Where the value of a variable comes from: exactly one of these."""

    fieldRef: ObjectFieldSelector | None = None
    resourceFieldRef: ResourceFieldSelector | None = None
    configMapKeyRef: ConfigMapKeySelector | None = None
    secretKeyRef: SecretKeySelector | None = None


class EnvVar(Object):
    """An environment variable, given or taken from elsewhere."""

    name: str
    value: str = ""
    valueFrom: EnvVarSource | None = None


class ConfigMapEnvSource(Object):
    """A ConfigMap whose every key becomes a variable."""

    name: str = ""
    optional: bool | None = None


class SecretEnvSource(Object):
    """A Secret whose every key becomes a variable."""

    name: str = ""
    optional: bool | None = None


class EnvFromSource(Object):
    """Many variables at once, each with an optional prefix."""

    prefix: str = ""
    configMapRef: ConfigMapEnvSource | None = None
    secretRef: SecretEnvSource | None = None


class ResourceClaim(Object):
    """A device claim of the pod that the container uses."""

    name: str
    request: str = ""


class ResourceRequirements(Object):
    """What a container is promised (requests) and held to (limits)."""

    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}
    claims: Sequence[ResourceClaim] = ()


class VolumeMount(Object):
    """Where the container sees a volume of the pod."""

    name: str
    mountPath: str
    readOnly: bool | None = None
    recursiveReadOnly: str | None = None
    subPath: str = ""
    subPathExpr: str = ""
    mountPropagation: str | None = None


class ExecAction(Object):
    """A command run inside the container; exit code 0 is success."""

    command: Sequence[str] = ()


class HTTPHeader(Object):
    """One header of a probe's request."""

    name: str
    value: str


class HTTPGetAction(Object):
    """A GET to the pod; a status from 200 to 399 is success."""

    port: int | str
    path: str = ""
    host: str = ""
    scheme: str = ""
    httpHeaders: Sequence[HTTPHeader] = ()


class TCPSocketAction(Object):
    """A connection to a port; being accepted is success."""

    port: int | str
    host: str = ""


class GRPCAction(Object):
    """A call of the gRPC health service."""

    port: int
    service: str | None = None


class SleepAction(Object):
    """A pause before the container is stopped."""

    seconds: int


class Probe(Object):
    """A repeated check of a container, by exactly one of four means."""

    exec: ExecAction | None = None
    httpGet: HTTPGetAction | None = None
    tcpSocket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initialDelaySeconds: int | None = None
    periodSeconds: int | None = None
    timeoutSeconds: int | None = None
    successThreshold: int | None = None
    failureThreshold: int | None = None
    terminationGracePeriodSeconds: int | None = None


class LifecycleHandler(Object):
    """What to do at a turn of a container's life: exactly one of these."""

    exec: ExecAction | None = None
    httpGet: HTTPGetAction | None = None
    tcpSocket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Object):
    """What runs right after a container starts and right before it is stopped."""

    postStart: LifecycleHandler | None = None
    preStop: LifecycleHandler | None = None


class Capabilities(Object):
    """Linux capabilities added to and dropped from the runtime's default set."""

    add: Sequence[str] = ()
    drop: Sequence[str] = ()


class SeccompProfile(Object):
    """Which system calls are allowed: RuntimeDefault, Unconfined or Localhost."""

    type: str
    localhostProfile: str | None = None


class AppArmorProfile(Object):
    """Which AppArmor profile applies: RuntimeDefault, Unconfined or Localhost."""

    type: str
    localhostProfile: str | None = None


class SELinuxOptions(Object):
    """The SELinux context of a process."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class SecurityContext(Object):
    """What one container may do; it overrides the pod's own context."""

    runAsUser: int | None = None
    runAsGroup: int | None = None
    runAsNonRoot: bool | None = None
    readOnlyRootFilesystem: bool | None = None
    allowPrivilegeEscalation: bool | None = None
    privileged: bool | None = None
    capabilities: Capabilities | None = None
    seccompProfile: SeccompProfile | None = None
    appArmorProfile: AppArmorProfile | None = None
    seLinuxOptions: SELinuxOptions | None = None
    procMount: str | None = None


class ContainerSummary(Object):
    """What controllers read of a container: which it is, what it runs and holds."""

    name: str
    image: str = ""
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)


class Container(ContainerSummary):
    """One container of a pod.

    An init container with ``restartPolicy="Always"`` is a sidecar: it starts before
    the others and runs beside them.
    """

    imagePullPolicy: str = ""
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    workingDir: str = ""
    env: Sequence[EnvVar] = ()
    envFrom: Sequence[EnvFromSource] = ()
    ports: Sequence[ContainerPort] = ()
    volumeMounts: Sequence[VolumeMount] = ()
    livenessProbe: Probe | None = None
    readinessProbe: Probe | None = None
    startupProbe: Probe | None = None
    lifecycle: Lifecycle | None = None
    securityContext: SecurityContext | None = None
    restartPolicy: str | None = None
    terminationMessagePath: str = ""
    terminationMessagePolicy: str = ""
    stdin: bool | None = None
    stdinOnce: bool | None = None
    tty: bool | None = None


class EphemeralContainer(Container):
    """A container that joined a pod that was running, to look into it."""

    targetContainerName: str = ""
