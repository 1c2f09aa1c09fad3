"""Documents: what a server says about itself, below paths that are no resources."""

from __future__ import annotations

import hashlib
import platform
from typing import Any

from trimtab.embedded import bodies, discovery, facts
from trimtab.embedded.bodies import JSON
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.tokens import ALGORITHM, ISSUER, Tokens

AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TEXT = "text/plain; charset=utf-8"
JWKS = "application/jwk-set+json"
ISSUER_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/openid/v1/jwks"
HEALTH = ("/healthz", "/livez", "/readyz")
VERSION_PATH = "/version"
ALONE = {VERSION_PATH: (JSON,), ISSUER_PATH: (JSON,), KEYS_PATH: (JWKS,)}
"""What is read by GET alone, and each of them in one form alone."""
CHECKS = ("ping", "etcd", "poststarthook/bootstrap")
KUBERNETES = "v1.36.3"

Found = tuple[str, bytes]


class Documents:
    """Version, health and discovery of a catalog."""

    def __init__(self, catalog: Catalog, *, address: str, tokens: Tokens) -> None:
        self._catalog = catalog
        self._tokens = tokens
        self._address = address

    def find(self, request: ApiRequest) -> Found | None:
        """The document at a path; None if there is none."""
        parts = request.path.strip("/").split("/")
        if f"/{parts[0]}" in HEALTH:
            return self._health(request, parts)
        path = f"/{'/'.join(parts)}"
        if path == VERSION_PATH:
            return _json(version())
        if parts in (["api"], ["apis"]):
            return self._root(request, core=parts == ["api"])
        if parts[0] in ("api", "apis"):
            return self._discovery(request, parts)
        if parts == [""]:
            return _json({"paths": self._paths()})
        if path == ISSUER_PATH:
            return _json(self._issuer())
        if path == KEYS_PATH:
            return JWKS, bodies.encode(self._tokens.keys())
        return None

    def _issuer(self) -> dict[str, Any]:
        """How to check the tokens of service accounts, as OpenID Connect says it."""
        return {
            "issuer": ISSUER,
            "jwks_uri": f"https://{self._address}{KEYS_PATH}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }

    def _health(self, request: ApiRequest, parts: list[str]) -> Found | None:
        if len(parts) > 1:
            return (TEXT, b"ok") if "/".join(parts[1:]) in CHECKS else None
        if request.path.endswith("/"):
            return None
        if "verbose" in request.query:
            lines = [f"[+]{check} ok" for check in CHECKS]
            text = "\n".join([*lines, f"{parts[0]} check passed", ""])
            return TEXT, text.encode()
        return TEXT, b"ok"

    def _resources(self) -> tuple[facts.ServedResource, ...]:
        return tuple(self._catalog.resources())

    def _root(self, request: ApiRequest, *, core: bool) -> Found:
        choice = _aggregated(request)
        if choice:
            document = discovery.aggregated(self._resources(), core=core)
            return f"{choice};{AGGREGATED}", bodies.encode(document, choice)
        if core:
            return _negotiated(request, discovery.api_versions(self._address))
        return _negotiated(request, discovery.group_list(self._resources()))

    def _discovery(self, request: ApiRequest, parts: list[str]) -> Found | None:
        document = None
        resources = self._resources()
        if parts[0] == "api" and len(parts) == 2:
            document = discovery.resource_list(resources, group="", version=parts[1])
        elif parts[0] == "apis" and len(parts) == 2:
            document = discovery.group(resources, parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            document = discovery.resource_list(
                resources, group=parts[1], version=parts[2]
            )
        return None if document is None else _negotiated(request, document)

    def _paths(self) -> list[str]:
        places = {(each.group, each.version) for each in self._resources()}
        paths = {"/api", "/api/v1", "/apis", "/openapi/v2", "/openapi/v3", "/version"}
        paths |= {f"/apis/{group}" for group, _ in places if group}
        paths |= {f"/apis/{group}/{version}" for group, version in places if group}
        return sorted(paths | {*HEALTH, "/metrics", ISSUER_PATH, KEYS_PATH})


def version() -> dict[str, str]:
    """What ``/version`` says: the Kubernetes version whose behaviour this is."""
    commit = hashlib.sha1(KUBERNETES.encode(), usedforsecurity=False).hexdigest()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(
        platform.machine(), platform.machine()
    )
    return {
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": KUBERNETES,
        "gitCommit": commit,
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{machine}",
    }


def headers_of(content_type: str, path: str) -> tuple[tuple[str, str], ...]:
    """What is said beside a document of a type, or its absence."""
    if content_type == TEXT and path.rpartition("/")[2] not in CHECKS:
        return (("X-Content-Type-Options", "nosniff"),)
    if AGGREGATED in content_type:
        return (("Cache-Control", "public"),)
    if path.rstrip("/") in (ISSUER_PATH, KEYS_PATH):
        return (("Cache-Control", "public, max-age=3600"),)
    return ()


def _json(document: Any) -> Found:
    return JSON, bodies.encode(document)


def _negotiated(request: ApiRequest, document: Any) -> Found:
    """A document in the encoding that the client likes best of those it accepts."""
    media = bodies.media_of(request.headers.get("accept", ""))
    return media, bodies.encode(document, media)


def _aggregated(request: ApiRequest) -> str:
    """The encoding in which all groups are wanted at once; empty if they are not."""
    for choice in request.headers.get("accept", "").split(","):
        media, *facts = (part.strip() for part in choice.split(";"))
        if media in bodies.TYPES and {"as=APIGroupDiscoveryList", "v=v2"} <= {*facts}:
            return media
    return ""
