"""Charts: a Helm chart of an operator, from the same source as its CRDs and roles."""

from __future__ import annotations

import copy
import json
import re
from typing import Any, Final

import msgspec
import yaml

from trimtab.authoring import chart_templates as templates
from trimtab.authoring import pod_templates as pods
from trimtab.authoring import policy_templates as policies
from trimtab.authoring import program_templates as programs
from trimtab.authoring.chart_templates import HOME
from trimtab.authoring.permissions import CLUSTER, Rule, rules_of
from trimtab.authoring.uses import uses_of
from trimtab.client.errors import TrimtabError
from trimtab.runtime.operator import Operator
from trimtab.runtime.webhooks.configurations import KINDS, configuration_name
from trimtab.runtime.webhooks.declarations import Declarations

Plain = dict[str, Any]

ANY: Final = "trimtab-any-namespace"
"""Stands for each namespace of a release that has Roles only."""
EACH: Final = "{{ $namespace }}"
ASKED: Final = ".Values.webhooks.enabled"
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
    narrows = _narrow_rules(operator) is not None
    values = values_of(chart, elects=elects)
    schema = schema_of(values, elects=elects, narrows=narrows)
    return {
        "Chart.yaml": _yaml(_metadata(chart)),
        "values.yaml": templates.values(values, _comments(operator)),
        "values.schema.json": json.dumps(schema, indent=2) + "\n",
        ".helmignore": templates.IGNORED,
        **{
            f"crds/{each['metadata']['name']}.yaml": _yaml(each)
            for each in chart.definitions
        },
        "templates/_helpers.tpl": templates.HELPERS,
        "templates/NOTES.txt": templates.notes(by=_switch(operator)),
        **{
            f"templates/{name}.yaml": templates.switched(text, by=_switch(operator))
            for name, text in _own(operator, elects=elects).items()
        },
        **{
            f"templates/{each.name}.yaml": programs.template(each)
            for each in operator.programs
        },
        "templates/networkpolicy.yaml": policies.template(
            operator.programs, asked=asked, switched=_switch(operator)
        ),
    }


def _own(operator: Operator, *, elects: bool) -> dict[str, str]:
    """What belongs to the operator itself, by the name of its file."""
    asked, optional = bool(operator.webhooks), operator.optional_webhooks
    found = {
        "serviceaccount": templates.ACCOUNT,
        "rbac": _rbac(operator),
        "deployment": templates.deployment(
            elects=elects, asked=asked, optional=optional
        ),
        "service": templates.service(asked=asked, optional=optional),
        "poddisruptionbudget": templates.BUDGET,
        "servicemonitor": templates.MONITOR,
    }
    if configurations := _webhooks(operator):
        by = ASKED if optional else ""
        found["webhooks"] = templates.switched(configurations, by=by)
    return found


def _switch(operator: Operator) -> str:
    """What its own templates depend on; nothing, if it is all that there is."""
    return ".Values.operator.enabled" if operator.programs else ""


def _comments(operator: Operator) -> dict[str, str]:
    return {each.name: each.about for each in operator.programs}


def _rbac(operator: Operator) -> str:
    """The roles, without those of webhooks where these are not wanted."""
    made = _roles(rules_of(operator, namespace=HOME), _narrow_rules(operator))
    if not (operator.webhooks and operator.optional_webhooks):
        return made
    plain = copy.copy(operator)
    plain.webhooks = Declarations()
    other = _roles(rules_of(plain, namespace=HOME), _narrow_rules(plain))
    return f"{{{{- if {ASKED} }}}}\n{made}{{{{- else }}}}\n{other}{{{{- end }}}}\n"


def _webhooks(operator: Operator) -> str:
    """The configurations, empty: they go with the release, and the operator fills them
    when it can answer."""
    name = configuration_name(operator.name, HOME)
    kinds = [kind for verb, kind in KINDS.items() if operator.webhooks.of(verb)]
    made = [templates.configuration(kind.apiVersion, kind.kind, name) for kind in kinds]
    return "---\n".join(made)


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
    operator = chart.operator
    values: Plain = {
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
        **pods.VALUES,
        "serviceMonitor": {"enabled": False, "interval": "30s", "labels": {}},
        "networkPolicy": policies.values_of(operator.programs),
    }
    if operator.webhooks:
        asked = {"port": 9443, "certificateSecret": "", "injectFrom": ""}
        first = {"enabled": False} if operator.optional_webhooks else {}
        values["webhooks"] = first | asked
    if operator.programs:
        values = {"operator": {"enabled": operator.installed}, **values}
    return values | {each.name: programs.values_of(each) for each in operator.programs}


def schema_of(values: Plain, *, elects: bool, narrows: bool) -> Plain:
    """The JSON schema of the values; a mistake in them is told before anything is."""
    schema = _schema(values)
    _bound_numbers(schema)
    properties = schema["properties"]
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


def _bound_numbers(schema: Plain) -> None:
    """Say of values that are called the same everywhere what they can be."""
    port = {"minimum": 1, "maximum": 65535}
    for name, found in schema.get("properties", {}).items():
        if name == "replicas":
            found |= {"minimum": 0}
        elif name == "port":
            found |= port
        elif name == "ports":
            for each in found["properties"].values():
                each |= port
        elif name.endswith("Ports"):
            found["items"] = {"type": "integer", **port}
        elif name == "log":
            found["enum"] = ["debug", "info", "warning", "error"]
        elif name == "slots":
            found |= {"minimum": 1, "maximum": 64}
        else:
            _bound_numbers(found)


def _schema(value: Any) -> Plain:
    """The schema that a default has by itself."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer"}
    if isinstance(value, float):
        return {"type": "number"}
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
