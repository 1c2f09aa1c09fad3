"""Services: which pods stand behind each, where it is reached, and who is told so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from errno import EADDRINUSE
from ipaddress import IPv4Address
from typing import Any

from trimtab.api.kinds import Service, ServicePort, WholePod
from trimtab.api.resource import Metadata, Resource, owner_of
from trimtab.cache import Informer
from trimtab.client import ApiError, Client, NotFound, TrimtabError
from trimtab.kubelet.forwarder import Forwarder, Place
from trimtab.kubelet.pods import is_terminal
from trimtab.kubelet.ports import holds_everywhere
from trimtab.kubelet.site import LOOPBACK
from trimtab.kubelet.workloads.deployments import template_hash
from trimtab.runtime.events import Recorder

logger = logging.getLogger("trimtab.kubelet")

MANAGER = "endpointslice-controller"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "None"
NETWORK = int(IPv4Address("127.96.0.0"))
"""Where Services are reached that have an address elsewhere."""
PAUSE = 0.05
"""Seconds to gather changes: pods become ready in crowds."""
RETRY = 2.0

Plain = dict[str, Any]


class EndpointSlice(Resource, group="discovery.k8s.io", version="v1", builtin=True):
    """The pods behind a Service.

    Loopback addresses are not allowed in one, so pods are there by their DNS name,
    which has the address in it.
    """

    addressType: str = ""
    endpoints: Sequence[Plain] | None = ()
    ports: Sequence[Plain] | None = ()


def reached_at(service: Service) -> str:
    """The address on this machine at which a Service is reached; empty if at none."""
    address = service.spec.clusterIP
    if not address or address == HEADLESS or ":" in address:
        return ""
    number = IPv4Address(address)
    return (
        address
        if number.is_loopback
        else str(IPv4Address(NETWORK | int(number) & 0xFFFF))
    )


class Services:
    """Keeps slices and forwarded ports as pods and Services come and go.

    Flow: ``run`` in a task, with informers of all pods and all Services beside.
    """

    def __init__(
        self,
        client: Client,
        *,
        pods: Informer[WholePod],
        services: Informer[Service],
        recorder: Recorder,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._pods = pods
        self._services = services
        self._recorder = recorder
        self._changed = changed
        self._awake = asyncio.Event()
        self._written: dict[tuple[str, str], EndpointSlice] = {}
        self._forwarder = Forwarder(problem=self._cannot_listen)

    async def run(self) -> None:
        """Keep them until cancelled."""
        await self._pods.wait_synced()
        await self._services.wait_synced()
        stops = [
            self._pods.subscribe(lambda _: self._awake.set()),
            self._services.subscribe(lambda _: self._awake.set()),
        ]
        try:
            while True:
                await self._awake.wait()
                await asyncio.sleep(PAUSE)
                self._awake.clear()
                await self._pass()
        finally:
            for stop in stops:
                stop()
            await self._forwarder.close()

    async def _pass(self) -> None:
        routes: dict[Place, list[Place]] = {}
        names = set()
        for service in list(self._services.store.values()):
            if not service.spec.selector:
                continue
            names.add(service.key)
            pods = list(self._behind(service))
            routes |= dict(_routes(service, pods))
            await self._keep(service, pods)
        for key in self._written.keys() - names:
            del self._written[key]  # the slice goes with its owner
        await self._forwarder.route(routes)
        self._changed()

    def _behind(self, service: Service) -> Iterator[WholePod]:
        wanted = service.spec.selector.items()
        for pod in self._pods.store.values():
            if (
                pod.metadata.namespace == service.metadata.namespace
                and wanted <= pod.metadata.labels.items()
                and pod.status.podIP
                and not is_terminal(pod)
            ):
                yield pod

    async def _keep(self, service: Service, pods: Sequence[WholePod]) -> None:
        made = slice_of(service, pods)
        if self._written.get(service.key) == made:
            return
        try:
            await self._client.apply(made, manager=MANAGER, force=True)
            self._written[service.key] = made
        except NotFound:
            pass  # its namespace is going
        except ApiError as error:
            logger.warning("%s", f"The endpoints of {service} were refused: {error}")
            self._written[service.key] = made
        except TrimtabError as error:
            logger.warning("%s", f"The endpoints of {service} are late: {error}")
            asyncio.get_running_loop().call_later(RETRY, self._awake.set)

    def _cannot_listen(self, place: Place, error: OSError) -> None:
        host, port = place
        if error.errno == EADDRINUSE and holds_everywhere(port):
            return  # it is reached without us, there as everywhere
        why = error.strerror or str(error)
        logger.warning(
            "%s", f"A Service cannot be reached at {host}:{port} of this machine: {why}"
        )
        for service in self._services.store.values():
            if reached_at(service) == host:
                self._recorder.event(
                    service,
                    "Warning",
                    "NotForwarded",
                    f"Port {port} cannot be listened on at {host}: {why}. Ports below "
                    "1024 are the administrator's on most systems: use another.",
                )

    def variables(self, namespace: str) -> dict[str, str]:
        """What tells a pod of a namespace where its Services are."""
        made: dict[str, str] = {}
        for service in self._services.store.values():
            host = reached_at(service)
            own = service.metadata.namespace == namespace
            if own and host and service.spec.selector:
                made |= _variables(service, host)
        return made

    def hosts(self, namespace: str) -> str:
        """Lines of a hosts file that name the Services."""
        lines = []
        for service in self._services.store.values():
            name, place = service.metadata.name, service.metadata.namespace
            names = [f"{name}.{place}.svc.cluster.local", f"{name}.{place}.svc"]
            names += [f"{name}.{place}", *([name] if place == namespace else [])]
            if service.spec.clusterIP == HEADLESS:
                addresses = [p.status.podIP for p in self._behind(service) if _ready(p)]
            else:
                addresses = [reached_at(service)] if service.spec.selector else []
            lines += [f"{each}\t{' '.join(names)}\n" for each in addresses if each]
        return "".join(lines)


def _ready(pod: WholePod) -> bool:
    going = pod.metadata.deletionTimestamp is not None
    return pod.status.conditions.is_true("Ready") and not going


def target(pod: WholePod, port: ServicePort) -> int:
    """The port of a pod that a Service's port means; 0 if it has none of its name."""
    wanted = port.port if port.targetPort in (None, "", 0) else port.targetPort
    if isinstance(wanted, int):
        return wanted
    for container in pod.spec.containers:
        for each in container.ports:
            if each.name == wanted:
                return each.containerPort
    return 0


def _routes(
    service: Service, pods: Sequence[WholePod]
) -> Iterator[tuple[Place, list[Place]]]:
    """Where a Service is reached, and by which pods; nowhere while there are none.

    A pod that listens on all addresses can then have the port of its own Service.
    """
    host = reached_at(service)
    unready = bool(service.spec.publishNotReadyAddresses)
    for port in service.spec.ports:
        if (port.protocol or "TCP") != "TCP":
            continue
        behind = [
            (pod.status.podIP, number)
            for pod in pods
            if (unready or _ready(pod)) and (number := target(pod, port))
        ]
        if host and behind:
            yield (host, port.port), behind
        if port.nodePort and behind:
            yield (LOOPBACK, port.nodePort), behind


def slice_of(service: Service, pods: Sequence[WholePod]) -> EndpointSlice:
    """The slice that tells of a Service's pods."""
    meta = service.metadata
    suffix = template_hash({"service": meta.uid})[:5]
    first = pods[0] if pods else None
    ports = [
        {
            "name": port.name,
            "protocol": port.protocol or "TCP",
            "port": number,
        }
        for port in service.spec.ports
        if (number := target(first, port) if first else 0)
    ]
    return EndpointSlice(
        metadata=Metadata(
            name=f"{meta.name}-{suffix}",
            namespace=meta.namespace,
            labels={SERVICE_NAME: meta.name, MANAGED_BY: f"{MANAGER}.k8s.io"},
            ownerReferences=[owner_of(service)],
        ),
        addressType="FQDN",
        endpoints=[_endpoint(pod) for pod in pods],
        ports=ports,
    )


def _endpoint(pod: WholePod) -> Plain:
    meta = pod.metadata
    ready, going = _ready(pod), meta.deletionTimestamp is not None
    dashed = pod.status.podIP.replace(".", "-")
    return {
        "addresses": [f"{dashed}.{meta.namespace}.pod.cluster.local"],
        "conditions": {
            "ready": ready,
            "serving": pod.status.conditions.is_true("Ready"),
            "terminating": going,
        },
        "nodeName": pod.spec.nodeName,
        "targetRef": {
            "kind": "Pod",
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
        },
    }


def _variables(service: Service, host: str) -> dict[str, str]:
    name = service.metadata.name.upper().replace("-", "_")
    made = {f"{name}_SERVICE_HOST": host}
    for number, port in enumerate(service.spec.ports):
        protocol = (port.protocol or "TCP").lower()
        url = f"{protocol}://{host}:{port.port}"
        if number == 0:
            made[f"{name}_SERVICE_PORT"] = str(port.port)
            made[f"{name}_PORT"] = url
        if port.name:
            word = port.name.upper().replace("-", "_")
            made[f"{name}_SERVICE_PORT_{word}"] = str(port.port)
        prefix = f"{name}_PORT_{port.port}_{protocol.upper()}"
        made |= {
            prefix: url,
            f"{prefix}_PROTO": protocol,
            f"{prefix}_PORT": str(port.port),
            f"{prefix}_ADDR": host,
        }
    return made
