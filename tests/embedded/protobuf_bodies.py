"""Bodies that Go made of every built-in kind, as ``hack/protobuf`` records them."""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from trimtab.embedded import facts

DATA = Path(__file__).with_name("data") / "protobuf.json.gz"


class Body(msgspec.Struct, frozen=True, rename="camel"):
    """An object as a Go client sends it, and as Go reads that."""

    api_version: str
    kind: str
    filling: str
    """What is in it; ``given`` is an object that a server takes."""
    protobuf: bytes
    object: dict[str, Any]

    @property
    def known(self) -> tuple[str, str]:
        return self.api_version, self.kind

    def path(self, namespace: str) -> str:
        """Where objects of its kind are made; in its own namespace if it has one."""
        namespace = self.object["metadata"].get("namespace", namespace)
        for each in facts.resources():
            if (each.api_version, each.kind) == self.known:
                root = f"/apis/{each.api_version}" if each.group else "/api/v1"
                place = f"/namespaces/{namespace}" if each.namespaced else ""
                return f"{root}{place}/{each.plural}"
        raise LookupError(self.known)


@lru_cache(maxsize=1)
def bodies() -> tuple[Body, ...]:
    lines = gzip.decompress(DATA.read_bytes())
    return tuple(msgspec.json.Decoder(Body).decode_lines(lines))


def samples() -> list[Body]:
    """Those that a server takes."""
    return [each for each in bodies() if each.filling == "given"]


def without_nulls(value: Any) -> Any:
    """A value without the fields that say nothing: to a reader null is no field."""
    if isinstance(value, dict):
        return {
            key: without_nulls(item) for key, item in value.items() if item is not None
        }
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
