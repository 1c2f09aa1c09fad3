"""Variables: a container's, read as a kubelet would, for who runs it otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from trimtab.api import Resource
from trimtab.client import Client, NotFound
from trimtab.kinds import ConfigMap, Secret

Plain = dict[str, Any]
R = TypeVar("R", bound=Resource)
_REFERENCE: Final = re.compile(r"\$\$|\$\([^()$]*\)")


async def variables(reads: Reads, container: Plain) -> dict[str, str]:
    """The variables of a container, as a kubelet would make them.

    What a kubelet would refuse to start without is left out: the pool's own pod has it,
    or the runner says that it is missing.
    """
    made: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        made |= await _all_of(reads, source)
    for each in container.get("env", ()):
        value = await _value(each, reads, known=made)
        if value is not None:
            made[each["name"]] = value
    return made


async def _all_of(reads: Reads, source: Mapping[str, Any]) -> dict[str, str]:
    prefix = str(source.get("prefix", ""))
    for way in ("secretRef", "configMapRef"):
        if way in source:
            found = await reads.texts(way, source[way]["name"])
            return {f"{prefix}{key}": value for key, value in found.items()}
    return {}


async def _value(
    variable: Mapping[str, Any], reads: Reads, *, known: Mapping[str, str]
) -> str | None:
    source = variable.get("valueFrom")
    if source is None:
        return expanded(str(variable.get("value", "")), known)
    for way in ("secretKeyRef", "configMapKeyRef"):
        if way in source:
            return (await reads.texts(way, source[way]["name"])).get(source[way]["key"])
    return None


def expanded(text: str, known: Mapping[str, str]) -> str:
    """``$(NAME)`` replaced by what is known; ``$$`` is a dollar; the rest stays."""

    def one(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return known.get(match[0][2:-1], match[0])

    return _REFERENCE.sub(one, text)


class Reads:
    """Secrets and ConfigMaps of one namespace, each read once, for one start.

    What is not there is remembered, too. Nothing of it shows in a repr.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._secrets: dict[str, Secret | None] = {}
        self._maps: dict[str, ConfigMap | None] = {}

    def put(self, secret: Secret) -> None:
        """Take what was just written, and need not be read."""
        self._secrets[secret.metadata.name] = secret

    async def secret(self, name: str) -> Secret | None:
        if name not in self._secrets:
            self._secrets[name] = await self._read(Secret, name)
        return self._secrets[name]

    async def config_map(self, name: str) -> ConfigMap | None:
        if name not in self._maps:
            self._maps[name] = await self._read(ConfigMap, name)
        return self._maps[name]

    async def texts(self, way: str, name: str) -> dict[str, str]:
        """What a reference names; nothing where that is not there."""
        if not way.startswith("secret"):
            found = await self.config_map(name)
            return dict(found.data) if found is not None else {}
        secret = await self.secret(name)
        data = secret.data if secret is not None else {}
        return {key: value.decode("utf-8", "replace") for key, value in data.items()}

    async def _read(self, kind: type[R], name: str) -> R | None:
        try:
            return await self._client.get(kind, name, namespace=self._namespace)
        except NotFound:
            return None
