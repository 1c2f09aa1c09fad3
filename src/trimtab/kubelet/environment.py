"""The environment of a container: what it is given, in the order in which it counts."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

from trimtab.api.kinds import (
    ConfigMap,
    Container,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    Secret,
    WholePod,
)
from trimtab.api.quantity import Quantity
from trimtab.client import Client, NotFound
from trimtab.kubelet import fields

REFERENCE = re.compile(r"\$(\$|\([^()$]*\)|)")


class ConfigProblem(Exception):
    """Something that the container's configuration refers to is not there."""


class Maps:
    """ConfigMaps and Secrets of one namespace, each read once for one start."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._read: dict[tuple[str, str], Mapping[str, bytes] | None] = {}

    async def config(self, name: str, *, optional: bool) -> Mapping[str, bytes] | None:
        return await self._get("configmap", name, self._config, optional)

    async def secret(self, name: str, *, optional: bool) -> Mapping[str, bytes] | None:
        return await self._get("secret", name, self._secret, optional)

    async def _get(
        self,
        what: str,
        name: str,
        read: Callable[[str], Awaitable[Mapping[str, bytes]]],
        optional: bool,
    ) -> Mapping[str, bytes] | None:
        place = (what, name)
        if place not in self._read:
            try:
                self._read[place] = await read(name)
            except NotFound:
                self._read[place] = None
        if self._read[place] is None and not optional:
            raise ConfigProblem(f'{what} "{name}" not found')
        return self._read[place]

    async def _config(self, name: str) -> Mapping[str, bytes]:
        found = await self._client.get(ConfigMap, name, namespace=self._namespace)
        texts = {key: value.encode() for key, value in found.data.items()}
        return {**texts, **found.binaryData}

    async def _secret(self, name: str) -> Mapping[str, bytes]:
        found = await self._client.get(Secret, name, namespace=self._namespace)
        return found.data


class Environment:
    """Makes the variables of one container of one pod.

    Errors: :class:`ConfigProblem` with the kubelet's words.
    """

    def __init__(
        self,
        pod: WholePod,
        maps: Maps,
        *,
        host: str,
        address: str,
        allocatable: Mapping[str, Quantity],
    ) -> None:
        self._pod = pod
        self._maps = maps
        self._host = host
        self._address = address
        self._allocatable = allocatable

    async def of(
        self, container: Container, *, base: Mapping[str, str]
    ) -> dict[str, str]:
        """All variables: the base, ``envFrom``, then ``env``; later ones win."""
        made = dict(base)
        for source in container.envFrom:
            made |= await self._from(source)
        for variable in container.env:
            value = await self._value(variable, container, made)
            if value is not None:
                made[variable.name] = value
        return made

    async def _from(self, source: EnvFromSource) -> dict[str, str]:
        held: Mapping[str, bytes] | None = None
        if source.configMapRef is not None:
            reference = source.configMapRef
            held = await self._maps.config(
                reference.name, optional=bool(reference.optional)
            )
        elif source.secretRef is not None:
            secret = source.secretRef
            held = await self._maps.secret(secret.name, optional=bool(secret.optional))
        return {
            source.prefix + key: value.decode(errors="replace")
            for key, value in (held or {}).items()
        }

    async def _value(
        self, variable: EnvVar, container: Container, known: Mapping[str, str]
    ) -> str | None:
        if variable.valueFrom is None:
            return expanded(variable.value, known)
        try:
            return await self._sourced(variable.valueFrom, container)
        except fields.NoSuchField as error:
            raise ConfigProblem(str(error)) from error

    async def _sourced(self, source: EnvVarSource, container: Container) -> str | None:
        if source.fieldRef is not None:
            path = source.fieldRef.fieldPath
            return fields.field_of(
                self._pod, path, host=self._host, address=self._address
            )
        if source.resourceFieldRef is not None:
            return fields.resource_of(
                self._pod,
                source.resourceFieldRef,
                container,
                allocatable=self._allocatable,
            )
        return await self._from_key(source)

    async def _from_key(self, source: EnvVarSource) -> str | None:
        if source.configMapKeyRef is not None:
            wanted, what = source.configMapKeyRef, "ConfigMap"
            optional = bool(wanted.optional)
            held = await self._maps.config(wanted.name, optional=optional)
        elif source.secretKeyRef is not None:
            secret, what = source.secretKeyRef, "Secret"
            optional = bool(secret.optional)
            held = await self._maps.secret(secret.name, optional=optional)
            return self._keyed(held, what, secret.name, secret.key, optional)
        else:
            return None
        return self._keyed(held, what, wanted.name, wanted.key, optional)

    def _keyed(
        self,
        held: Mapping[str, bytes] | None,
        what: str,
        name: str,
        key: str,
        optional: bool,
    ) -> str | None:
        if held is not None and key in held:
            return held[key].decode(errors="replace")
        if optional:
            return None
        place = f"{self._pod.metadata.namespace}/{name}"
        raise ConfigProblem(f"couldn't find key {key} in {what} {place}")


def expanded(text: str, known: Mapping[str, str]) -> str:
    """``$(NAME)`` replaced by what is known; ``$$`` is a dollar; the rest stays."""

    def replace(match: re.Match[str]) -> str:
        inner = match[1]
        if inner == "$":
            return "$"
        name = inner[1:-1]
        return known.get(name, match[0]) if inner else match[0]

    return REFERENCE.sub(replace, text)
