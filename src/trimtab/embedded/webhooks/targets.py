"""Targets: where a webhook is reached, which for a Service its endpoints say.

No node routes here, so a Service has no address that anybody could be reached at; what
it stands for is asked directly, under the name that its certificate must be for.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from trimtab.embedded.calls import MOST_BYTES, Call
from trimtab.embedded.kinds import Plain
from trimtab.embedded.status import quoted
from trimtab.embedded.store import Store
from trimtab.embedded.webhooks.hooks import ClientConfig

SERVICES = "core/services/"
ENDPOINTS = "core/endpoints/"
SLICES = "discovery.k8s.io/endpointslices/"
SERVICE_LABEL = "kubernetes.io/service-name"


class Unresolved(Exception):
    """A Service that leads nowhere, in the words of the real server."""


class Targets:
    """Finds what webhooks name, in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def call(
        self,
        client: ClientConfig,
        *,
        seconds: float,
        head: bytes,
        tail: bytes,
        most: int = MOST_BYTES,
    ) -> Call:
        """A call to a webhook, which is told how long it has.

        Errors: :class:`Unresolved`.
        """
        url = url_of(client) + f"?timeout={int(seconds)}s"
        address = None
        if client.service is not None:
            address = self._resolve(client, url)
        return Call(
            url=url,
            address=address,
            ca=client.ca,
            timeout=seconds,
            most=most,
            head=head,
            tail=tail,
        )

    def _resolve(self, client: ClientConfig, url: str) -> tuple[str, int]:
        assert client.service is not None, "only a Service is resolved"
        namespace, name = client.service
        service = self._read(f"{SERVICES}{namespace}/{name}")
        if service is None:
            raise Unresolved(f'Post "{url}": service {quoted(name)} not found')
        for port in (service.get("spec") or {}).get("ports") or ():
            if port.get("port") == client.port:
                break
        else:
            raise Unresolved(
                f'Post "{url}": no service port {client.port} found for service '
                f"{quoted(name)}"
            )
        # The first one in order: reruns of a request must ask the same.
        for address in sorted(self._addresses(namespace, name, port)):
            return address
        raise Unresolved(
            f'Post "{url}": no endpoints available for service {quoted(name)}'
        )

    def _addresses(
        self, namespace: str, name: str, port: Plain
    ) -> Iterator[tuple[str, int]]:
        """Every ready address behind a port of a Service."""
        for row in self._store.range(f"{SLICES}{namespace}/"):
            part = msgspec.json.decode(row.value)
            labels = part["metadata"].get("labels") or {}
            if labels.get(SERVICE_LABEL) == name:
                yield from _in_slice(part, port)
        endpoints = self._read(f"{ENDPOINTS}{namespace}/{name}") or {}
        for subset in endpoints.get("subsets") or ():
            number = _port_in(subset.get("ports"), port)
            for each in subset.get("addresses") or () if number else ():
                yield each["ip"], number

    def _read(self, key: str) -> Plain | None:
        row = self._store.get(key)
        return None if row is None else msgspec.json.decode(row.value)


def url_of(client: ClientConfig) -> str:
    """The address as it is written."""
    url = client.url
    if client.service is not None:
        namespace, name = client.service
        path = client.path or "/"
        slash = "" if path.startswith("/") else "/"
        url = f"https://{name}.{namespace}.svc:{client.port}{slash}{path}"
    elif not urlsplit(url).path:
        url += "/"
    return url


def _in_slice(part: Plain, port: Plain) -> Iterator[tuple[str, int]]:
    number = _port_in(part.get("ports"), port)
    for endpoint in part.get("endpoints") or () if number else ():
        # One that does not say is ready.
        if (endpoint.get("conditions") or {}).get("ready") is not False:
            for address in endpoint.get("addresses") or ():
                yield address, number


def _port_in(ports: list[Plain] | None, wanted: Plain) -> int:
    """The number that a Service's port has at its endpoints; 0 if it has none."""
    for each in ports or ():
        if (each.get("name") or "") == (wanted.get("name") or ""):
            return int(each.get("port") or 0)
    return 0
