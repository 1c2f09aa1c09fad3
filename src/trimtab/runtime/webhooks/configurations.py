"""Configurations: what an API server is told of an operator's webhooks.

They are made from the declarations: at run time, with the authorities to trust, and by
``trimtab chart``, which leaves those to the operator.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.api.objects import Object
from trimtab.api.resource import Resource
from trimtab.runtime.definitions import OPERATOR_LABEL
from trimtab.runtime.webhooks.certificates import joined
from trimtab.runtime.webhooks.declarations import (
    CONVERTS,
    Declarations,
    Hook,
    Verb,
    definition_name,
    label_selector,
)

Plain = dict[str, Any]

GROUP = "admissionregistration.k8s.io"
NAMESPACE = "kubernetes.io/metadata.name"
"""The label that every namespace has, with its name."""
SPARED = ("kube-system",)
"""No webhook about built-in kinds is asked there, nor where the operator runs: without
it, neither could be mended."""
INJECT_FROM = "cert-manager.io/inject-ca-from"


class ClientConfig(Object):
    """Where a webhook is, of which only the trusted authorities matter here."""

    caBundle: bytes = b""


class Entry(Object):
    """One webhook of a configuration."""

    name: str = ""
    clientConfig: ClientConfig = ClientConfig()


class ValidatingWebhookConfiguration(
    Resource, group=GROUP, version="v1", builtin=True, namespaced=False
):
    """Webhooks that may refuse."""

    webhooks: list[Entry] = []


class MutatingWebhookConfiguration(
    Resource, group=GROUP, version="v1", builtin=True, namespaced=False
):
    """Webhooks that may change."""

    webhooks: list[Entry] = []


class ConversionWebhook(Object):
    """The webhook of a conversion."""

    clientConfig: ClientConfig = ClientConfig()


class ConversionStrategy(Object):
    """How a kind is converted."""

    strategy: str = "None"
    webhook: ConversionWebhook | None = None


class DefinitionSpec(Object):
    """Of a CRD, what is ours."""

    conversion: ConversionStrategy = ConversionStrategy()


class CustomResourceDefinition(
    Resource,
    group="apiextensions.k8s.io",
    version="v1",
    builtin=True,
    namespaced=False,
):
    """A custom kind, of which only the conversion matters here."""

    spec: DefinitionSpec = DefinitionSpec()


KINDS: dict[Verb, type[Resource]] = {
    "validates": ValidatingWebhookConfiguration,
    "mutates": MutatingWebhookConfiguration,
}


def configuration_name(operator: str, namespace: str) -> str:
    """What an operator's configurations are called; two may run in two namespaces."""
    return f"{operator}-{namespace}"


class Place(Object):
    """How the webhooks of an operator are reached, and where it runs."""

    operator: str
    namespace: str
    client: dict[str, Any]
    """A ``clientConfig`` without path and bundle."""
    inject_from: str = ""

    @property
    def annotations(self) -> dict[str, str]:
        return {INJECT_FROM: self.inject_from} if self.inject_from else {}

    def client_config(self, path: str, bundle: Iterable[bytes] | None) -> Plain:
        """The ``clientConfig`` of one path."""
        made: Plain = dict(self.client)
        if "url" in made:
            made["url"] += path
        else:
            made["service"] = {**made["service"], "path": path}
        if bundle is not None:
            made["caBundle"] = encoded(bundle)
        return made


def encoded(bundle: Iterable[bytes]) -> str:
    return b64encode(joined(bundle)).decode("ascii")


def configuration(
    declared: Declarations,
    verb: Verb,
    place: Place,
    *,
    bundle: Iterable[bytes] | None = None,
) -> Plain:
    """The configuration of all webhooks that validate, or that mutate."""
    kind = KINDS[verb]
    return {
        "apiVersion": kind.apiVersion,
        "kind": kind.kind,
        "metadata": _metadata(
            configuration_name(place.operator, place.namespace),
            labels={OPERATOR_LABEL: place.operator},
            annotations=place.annotations,
        ),
        "webhooks": [
            _entry(each, declared.namespaces, place, bundle)
            for each in declared.of(verb)
        ],
    }


def conversion(
    kind: type[Resource], place: Place, *, bundle: Iterable[bytes] | None = None
) -> Plain:
    """What a CRD says of its conversion."""
    return {
        "apiVersion": CustomResourceDefinition.apiVersion,
        "kind": CustomResourceDefinition.kind,
        "metadata": _metadata(definition_name(kind), annotations=place.annotations),
        "spec": {
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": place.client_config(CONVERTS, bundle),
                },
            }
        },
    }


def _metadata(name: str, **others: Mapping[str, str]) -> Plain:
    return {"name": name, **{key: dict(each) for key, each in others.items() if each}}


def _entry(
    hook: Hook,
    namespaces: tuple[str, ...],
    place: Place,
    bundle: Iterable[bytes] | None,
) -> Plain:
    info = hook.kind.__resource__
    return {
        "name": hook.name,
        "clientConfig": place.client_config(hook.path, bundle),
        "rules": [
            {
                "apiGroups": [info.group],
                "apiVersions": [info.version],
                "resources": [info.plural],
                "operations": list(hook.on),
                "scope": "Namespaced" if info.namespaced else "Cluster",
            }
        ],
        "failurePolicy": hook.failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": hook.timeout,
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": _namespaces(hook, namespaces, place),
        "objectSelector": label_selector(hook.labels),
    }


def _namespaces(hook: Hook, namespaces: tuple[str, ...], place: Place) -> Plain:
    chosen = label_selector(hook.namespaces_where).get("matchExpressions", [])
    if namespaces:
        chosen.append({"key": NAMESPACE, "operator": "In", "values": list(namespaces)})
    elif hook.kind.__definition__ is None:
        spared = [*SPARED, place.namespace]
        chosen.append({"key": NAMESPACE, "operator": "NotIn", "values": spared})
    return {"matchExpressions": chosen} if chosen else {}
