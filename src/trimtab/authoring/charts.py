"""Charts: a Helm chart of an operator, from the same source as its CRDs and roles."""

from __future__ import annotations

import copy
import json
import re
from typing import Any, Final

import msgspec
import yaml

from trimtab.authoring import chart_templates as templates
from trimtab.authoring.chart_templates import HOME
from trimtab.authoring.permissions import CLUSTER, Rule, rules_of
from trimtab.authoring.uses import uses_of
from trimtab.client.errors import TrimtabError
from trimtab.runtime.operator import Operator
from trimtab.runtime.webhooks.configurations import KINDS, configuration_name

Plain = dict[str, Any]

ANY: Final = "trimtab-any-namespace"
"""Stands for each namespace of a release that has Roles only."""
EACH: Final = "{{ $namespace }}"
VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")
IMAGE = re.compile(r"[a-z0-9](?:[a-z0-9._/:-]*[a-z0-9])?")


class BadChart(TrimtabError):
    """A chart cannot be made from what was given."""


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """What a chart is made from."""

    operator: Operator
    definitions: list[Plain]
    """The CRDs."""
    source: str
    """What ``trimtab run`` is given in the container."""
    image: str
    """The repository of the image; its tag is the version."""
    version: str = "0.1.0"

    def __post_init__(self) -> None:
        if not VERSION.fullmatch(self.version):
            raise BadChart(
                f"{self.version!r} is not a version of a chart; write 1.2.3, or "
                "1.2.3-rc.1."
            )
        if not IMAGE.fullmatch(self.image) or ":" in self.image.rpartition("/")[2]:
            raise BadChart(
                f"{self.image!r} is not a repository of images; write "
                "registry.example.com/team/name, and the tag with --version."
            )


def files_of(chart: Chart) -> dict[str, str]:
    """Every file of the chart by its path.

    Errors: what :func:`~trimtab.authoring.permissions.rules_of` raises.
    """
    operator = chart.operator
    elects = operator.leader and any(each.leader for each in operator.controllers())
    asked = bool(operator.webhooks)
    narrow = _narrow_rules(operator)
    values = values_of(chart, elects=elects)
    return {
        "Chart.yaml": _yaml(_metadata(chart)),
        "values.yaml": templates.values(values),
        "values.schema.json": json.dumps(
            schema_of(values, elects=elects, narrows=narrow is not None), indent=2
        )
        + "\n",
        ".helmignore": templates.IGNORED,
        **{
            f"crds/{each['metadata']['name']}.yaml": _yaml(each)
            for each in chart.definitions
        },
        "templates/_helpers.tpl": templates.HELPERS,
        "templates/NOTES.txt": templates.NOTES,
        "templates/serviceaccount.yaml": templates.ACCOUNT,
        "templates/rbac.yaml": _roles(rules_of(operator, namespace=HOME), narrow),
        "templates/deployment.yaml": templates.deployment(elects=elects, asked=asked),
        "templates/service.yaml": templates.service(asked=asked),
        "templates/poddisruptionbudget.yaml": templates.BUDGET,
        "templates/servicemonitor.yaml": templates.MONITOR,
        **_webhooks(operator),
    }


def _webhooks(operator: Operator) -> dict[str, str]:
    """The configurations, empty: they go with the release, and the operator fills them
    when it can answer."""
    name = configuration_name(operator.name, HOME)
    kinds = [kind for verb, kind in KINDS.items() if operator.webhooks.of(verb)]
    made = [templates.configuration(kind.apiVersion, kind.kind, name) for kind in kinds]
    return {"templates/webhooks.yaml": "---\n".join(made)} if made else {}


def _narrow_rules(operator: Operator) -> list[Rule] | None:
    """The rules of an install with Roles only; None if it cannot be had."""
    narrow = copy.copy(operator)
    try:
        narrow.within((ANY,))
    except ValueError:
        return None
    uses = uses_of(operator.controllers())
    return rules_of(narrow, namespace=HOME, uses=uses)


def _metadata(chart: Chart) -> Plain:
    return {
        "apiVersion": "v2",
        "name": chart.operator.name,
        "description": f"The operator {chart.operator.name}, made by trimtab chart.",
        "type": "application",
        "version": chart.version,
        "appVersion": chart.version,
        "kubeVersion": ">=1.28.0-0",
    }


def values_of(chart: Chart, *, elects: bool) -> Plain:
    """The values, each with its default."""
    return {
        "image": {"repository": chart.image, "tag": "", "pullPolicy": "IfNotPresent"},
        "imagePullSecrets": [],
        "source": chart.source,
        "replicas": 1,
        "leaderElection": elects,
        "namespaces": [],
        "log": "info",
        "port": 8080,
        "serviceAccount": {"create": True, "name": "", "annotations": {}},
        "resources": {
            "requests": {"cpu": "50m", "memory": "64Mi"},
            "limits": {"memory": "256Mi"},
        },
        "podAnnotations": {},
        "podLabels": {},
        "nodeSelector": {},
        "tolerations": [],
        "affinity": {},
        "env": [],
        "serviceMonitor": {"enabled": False, "interval": "30s", "labels": {}},
    } | (
        {"webhooks": {"port": 9443, "certificateSecret": "", "injectFrom": ""}}
        if chart.operator.webhooks
        else {}
    )


def schema_of(values: Plain, *, elects: bool, narrows: bool) -> Plain:
    """The JSON schema of the values; a mistake in them is told before anything is."""
    schema = _schema(values)
    properties = schema["properties"]
    properties["replicas"] |= {"minimum": 0}
    ports = {"minimum": 1, "maximum": 65535}
    properties["port"] |= ports
    if "webhooks" in properties:
        properties["webhooks"]["properties"]["port"] |= ports
    properties["log"]["enum"] = ["debug", "info", "warning", "error"]
    pulls = ["Always", "IfNotPresent", "Never"]
    properties["image"]["properties"]["pullPolicy"]["enum"] = pulls
    name = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
    properties["namespaces"]["items"] = name
    if not narrows:
        properties["namespaces"]["maxItems"] = 0
    if not elects:
        # The operator says that it elects nobody.
        properties["leaderElection"]["const"] = False
    schema["if"] = {"properties": {"leaderElection": {"const": False}}}
    schema["then"] = {"properties": {"replicas": {"maximum": 1}}}
    return {"$schema": "https://json-schema.org/draft-07/schema#", **schema}


def _schema(value: Any) -> Plain:
    """The schema that a default has by itself."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer"}
    if isinstance(value, str):
        return {"type": "string"}
    if isinstance(value, list):
        return {"type": "array"}
    if not value or "requests" in value:  # what Kubernetes itself checks
        return {"type": "object"}
    properties = {key: _schema(inner) for key, inner in value.items()}
    # Helm itself adds this one.
    known = {**properties, "global": {"type": "object"}}
    return {
        "type": "object",
        "properties": known if "image" in value else properties,
        "additionalProperties": False,
    }


def _roles(rules: list[Rule], narrow: list[Rule] | None) -> str:
    """Roles and bindings: for the cluster, or for each of the chosen namespaces."""
    wide = _bound(rules)
    if narrow is None or not any(rule.place == CLUSTER for rule in rules):
        return wide
    each = [rule for rule in narrow if rule.place == ANY]
    rest = [rule for rule in narrow if rule.place != ANY]
    return (
        "{{- if .Values.namespaces }}\n"
        "{{- range $namespace := .Values.namespaces }}\n"
        f"{templates.role(_plain(each), place=EACH)}"
        "{{- end }}\n"
        f"{_bound(rest)}"
        "{{- else }}\n"
        f"{wide}"
        "{{- end }}\n"
    )


def _bound(rules: list[Rule]) -> str:
    places = dict.fromkeys(rule.place for rule in rules)
    return "".join(
        templates.role(_plain([r for r in rules if r.place == place]), place=place)
        for place in places
    )


def _plain(rules: list[Rule]) -> str:
    return _yaml([rule.plain() for rule in rules])


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=88, allow_unicode=True)
