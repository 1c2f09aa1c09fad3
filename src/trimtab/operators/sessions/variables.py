"""Variables: a container's, read as a kubelet would, for who runs it otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from trimtab.client import Client, NotFound
from trimtab.kinds import ConfigMap, Secret

Plain = dict[str, Any]
_REFERENCE: Final = re.compile(r"\$\$|\$\([^()$]*\)")


async def variables(client: Client, namespace: str, container: Plain) -> dict[str, str]:
    """The variables of a container, as a kubelet would make them.

    What a kubelet would refuse to start without is left out: the pool's own pod has it,
    or the runner says that it is missing.
    """
    maps = _Maps(client, namespace)
    made: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        made |= await maps.all_of(source)
    for each in container.get("env", ()):
        value = await _value(each, maps, known=made)
        if value is not None:
            made[each["name"]] = value
    return made


async def _value(
    variable: Mapping[str, Any], maps: _Maps, *, known: Mapping[str, str]
) -> str | None:
    source = variable.get("valueFrom")
    if source is None:
        return expanded(str(variable.get("value", "")), known)
    for way in ("secretKeyRef", "configMapKeyRef"):
        if way in source:
            return (await maps.read(way, source[way]["name"])).get(source[way]["key"])
    return None


def expanded(text: str, known: Mapping[str, str]) -> str:
    """``$(NAME)`` replaced by what is known; ``$$`` is a dollar; the rest stays."""

    def one(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return known.get(match[0][2:-1], match[0])

    return _REFERENCE.sub(one, text)


class _Maps:
    """Secrets and ConfigMaps of one namespace, each read once."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._read: dict[tuple[bool, str], dict[str, str]] = {}

    async def all_of(self, source: Mapping[str, Any]) -> dict[str, str]:
        prefix = str(source.get("prefix", ""))
        for way in ("secretRef", "configMapRef"):
            if way in source:
                found = await self.read(way, source[way]["name"])
                return {f"{prefix}{key}": value for key, value in found.items()}
        return {}

    async def read(self, way: str, name: str) -> dict[str, str]:
        secret = way.startswith("secret")
        place = (secret, name)
        if place not in self._read:
            self._read[place] = await self._got(name, secret=secret)
        return self._read[place]

    async def _got(self, name: str, *, secret: bool) -> dict[str, str]:
        where = self._namespace
        try:
            if not secret:
                return dict(
                    (await self._client.get(ConfigMap, name, namespace=where)).data
                )
            found = await self._client.get(Secret, name, namespace=where)
        except NotFound:
            return {}
        return {
            name: text.decode("utf-8", "replace") for name, text in found.data.items()
        }
