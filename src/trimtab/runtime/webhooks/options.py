"""Options of webhooks: where they listen, how they are reached, whose certificates.

One of ``service`` and ``url`` says how the API server reaches this process; there is no
default, for a wrong one would be found out by the first user.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import msgspec

from trimtab.api.names import check_label

DAY: Final = 86400.0
PORT: Final = 9443


class WebhookOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How an operator's webhooks are served. Each field says its default.

    Errors: ``ValueError`` when they contradict each other.
    """

    host: str = "127.0.0.1"
    """Where it listens; in a pod, whose Service comes from outside, it is 0.0.0.0."""
    port: int = PORT
    """0 is any free port."""
    service: str = ""
    """The Service that leads here, in the namespace of the client's context: ``name``,
    or ``name:port`` if its port is not 443."""
    url: str = ""
    """The address that leads here, for a process outside the cluster. A port of 0
    stands for the one that is listened on."""
    secret: str = ""
    """The Secret that holds the certificates. Default: OPERATOR-webhooks."""
    lifetime: float = 30 * DAY
    """Seconds that a certificate lasts; it is renewed after two thirds of them."""
    settle: float = 30.0
    """Seconds between a new authority being trusted in every configuration and the
    first answer under its certificate: what API servers take to notice."""
    certificates: str = ""
    """A folder with ``tls.crt``, ``tls.key`` and perhaps ``ca.crt`` that somebody else
    renews. Default: Trimtab makes its own, in the Secret."""
    inject_from: str = ""
    """``NAMESPACE/NAME`` of the Certificate from which cert-manager tells the server
    whom to trust. Default: Trimtab does, by ``ca.crt``."""
    linger: float = 0.0
    """Seconds that requests are still answered after the process was told to stop,
    while others learn that it goes."""

    def __post_init__(self) -> None:
        if bool(self.service) == bool(self.url):
            raise ValueError(
                "Say how the API server reaches the webhooks: service=NAME in a "
                "cluster, or url=https://HOST:PORT outside of one."
            )
        if self.url:
            _check_url(self.url)
        else:
            _service(self.service)
        if self.lifetime <= 0 or not 0 <= self.settle <= self.lifetime / 6:
            raise ValueError(
                f"Certificates that last {self.lifetime:g} s cannot settle for "
                f"{self.settle:g} s; a sixth of the lifetime is the most."
            )
        if self.inject_from and (
            not self.certificates or self.inject_from.count("/") != 1
        ):
            raise ValueError(
                "inject_from is NAMESPACE/NAME of cert-manager's Certificate, and "
                "certificates= the folder where its Secret is mounted; give both."
            )

    def client_config(self, namespace: str, *, port: int) -> dict[str, object]:
        """The ``clientConfig`` that leads here, without a path or a bundle."""
        if self.url:
            return {"url": self._address(port)}
        name, number = _service(self.service)
        return {"service": {"namespace": namespace, "name": name, "port": number}}

    def names(self, namespace: str) -> tuple[str, ...]:
        """What a certificate must be for."""
        if self.url:
            return (urlsplit(self.url).hostname or "",)
        name, _ = _service(self.service)
        whole = f"{name}.{namespace}.svc"
        return (whole, f"{whole}.cluster.local", f"{name}.{namespace}", name)

    def _address(self, port: int) -> str:
        parts = urlsplit(self.url)
        if parts.port == 0:
            place = parts.netloc.removesuffix(":0")
            parts = parts._replace(netloc=f"{place}:{port}")
        return parts.geturl().rstrip("/")


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme == "https" and bool(parts.hostname) and (parts.port or 1)
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(
            f"{url!r} cannot be the address of webhooks; write https://HOST:PORT, the "
            "only scheme that API servers call."
        )


def _service(text: str) -> tuple[str, int]:
    name, colon, port = text.partition(":")
    try:
        check_label(name)
        number = int(port) if colon else 443
        if not 0 < number < 65536:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"{text!r} is not a Service; write its name, or NAME:PORT, without a "
            "namespace: it is where the operator runs."
        ) from None
    return name, number
