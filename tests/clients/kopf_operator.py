"""A small operator written with kopf, as anybody might: run by ``kopf run``.

A Bakery has as many ConfigMaps, its loaves, as its spec says.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from typing import Any

import kopf
import kubernetes

GROUP = "kopf.example.com"
PLURAL = "bakeries"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    kubernetes.config.load_kube_config()
    settings.posting.loggers = True
    settings.persistence.finalizer = f"{GROUP}/finalizer"


def loaf(name: str, number: int) -> dict[str, Any]:
    made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-{number}"},
        "data": {"number": str(number)},
    }
    kopf.adopt(made)
    return made


def core() -> Any:
    return kubernetes.client.CoreV1Api()


def bake(name: str, namespace: str | None, numbers: range) -> None:
    for number in numbers:
        core().create_namespaced_config_map(namespace, loaf(name, number))


@kopf.on.create(GROUP, "v1", PLURAL)
def created(
    spec: kopf.Spec, name: str, namespace: str | None, patch: kopf.Patch, **_: Any
) -> dict[str, Any]:
    bake(name, namespace, range(spec["loaves"]))
    patch.status["baked"] = spec["loaves"]
    return {"message": f"baked {spec['loaves']}"}


@kopf.on.update(GROUP, "v1", PLURAL, field="spec.loaves")
def changed(
    old: Any,
    new: Any,
    name: str,
    namespace: str | None,
    patch: kopf.Patch,
    body: kopf.Body,
    **_: Any,
) -> None:
    bake(name, namespace, range(old, new))
    patch.status["baked"] = new
    kopf.info(body, reason="Baked", message=f"{new - old} more")


@kopf.on.delete(GROUP, "v1", PLURAL)
def deleted(name: str, namespace: str | None, **_: Any) -> None:
    last_words = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-closed"},
    }
    core().create_namespaced_config_map(namespace, last_words)
