"""The templates of a chart's programs: each a Deployment with what belongs to it."""

from __future__ import annotations

from textwrap import indent
from typing import Any, Final

import yaml

from trimtab.authoring.pod_templates import PODS, VALUES, filled, role
from trimtab.runtime.programs import Place, Program

COMMON: Final[dict[str, Any]] = {
    "enabled": False,
    "replicas": 1,
    "log": "info",
    "resources": {
        "requests": {"cpu": "100m", "memory": "128Mi"},
        "limits": {"memory": "1Gi"},
    },
    **VALUES,
    "volumes": [],
    "volumeMounts": [],
}
"""The values that every program has."""

HEAD: Final = """\
{{- $values := .Values.@KEY@ }}
{{- $name := printf "%s-@NAME@" (include "operator.name" .) }}
{{- if $values.enabled }}
"""

LABELS: Final = """\
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ $.Chart.Name }}-@NAME@
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/component: @NAME@
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
"""

SELECTOR: Final = """\
app.kubernetes.io/name: {{ $.Chart.Name }}-@NAME@
app.kubernetes.io/instance: {{ $.Release.Name }}
"""

METADATA: Final = f"""\
metadata:
  name: {{{{ $name }}}}
  namespace: {{{{ $.Release.Namespace }}}}
  labels:
{indent(LABELS, "    ")}"""

ACCOUNT: Final = f"""\
apiVersion: v1
kind: ServiceAccount
{METADATA}"""

DEPLOYMENT: Final = f"""\
apiVersion: apps/v1
kind: Deployment
{METADATA}spec:
  replicas: {{{{ $values.replicas }}}}
  selector:
    matchLabels:
{indent(SELECTOR, "      ")}  strategy:
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
"""

LOG: Final = "- --log={{ $values.log }}\n"

ENV: Final = """\
          env:
@OWN@
            {{- with $values.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
"""

MOUNTS: Final = """\
            {{- with $values.volumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
"""

VOLUMES: Final = """\
        {{- with $values.volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
"""

PROBES: Final = """\
          livenessProbe:
            httpGet:
              path: /healthz
              port: @PROBED@
              scheme: HTTPS
          readinessProbe:
            httpGet:
              path: /readyz
              port: @PROBED@
              scheme: HTTPS
            periodSeconds: 5
"""

SERVICE: Final = f"""\
---
apiVersion: v1
kind: Service
{METADATA}spec:
  selector:
{indent(SELECTOR, "    ")}  ports:
"""

BUDGET: Final = f"""\
{{{{- if gt (int $values.replicas) 1 }}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
{METADATA}spec:
  maxUnavailable: 1
  selector:
    matchLabels:
{indent(SELECTOR, "      ")}{{{{- end }}}}
"""

MONITOR: Final = f"""\
{{{{- if $.Values.serviceMonitor.enabled }}}}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
{METADATA}    {{{{- with $.Values.serviceMonitor.labels }}}}
    {{{{- toYaml . | nindent 4 }}}}
    {{{{- end }}}}
spec:
  selector:
    matchLabels:
{indent(SELECTOR, "      ")}  endpoints:
    - port: @PROBED@
      path: /metrics
      scheme: https
      # What is scraped is no secret, and whose certificate it is depends on values.
      tlsConfig:
        insecureSkipVerify: true
      interval: {{{{ $.Values.serviceMonitor.interval }}}}
{{{{- end }}}}
"""


def values_of(program: Program) -> dict[str, Any]:
    """Its values, each with its default."""
    first = {key: COMMON[key] for key in ("enabled", "replicas", "log")}
    return {**first, **program.values, **COMMON}


def template(program: Program) -> str:
    """Everything of one program, in one file."""
    parts = [HEAD, ACCOUNT, _roles(program), _deployment(program)]
    if program.ports:
        parts.append(SERVICE + _ports(program, "port", "targetPort", indent=4))
    parts.append(BUDGET)
    if program.probed:
        parts.append(MONITOR)
    parts.append(program.more())
    made = "".join(parts) + "{{- end }}\n"
    places = {"NAME": program.name, "KEY": program.name, "PROBED": program.probed}
    return filled(made, places)


def _deployment(program: Program) -> str:
    ports = ""
    if program.ports:
        numbered = _ports(program, "containerPort", "", indent=12)
        ports = f"          ports:\n{numbered}"
    places = {
        "LABELS": indent(LABELS + program.labels, " " * 8),
        "VALUES": "$values",
        "ACCOUNT": "{{ $name }}",
        "GRACE": str(program.grace),
        "CONTAINER": program.name,
        "ARGUMENTS": indent(program.arguments + LOG, " " * 12),
        "ENV": filled(ENV, {"OWN": indent(program.env, " " * 12)}),
        "PORTS": ports + (PROBES if program.probed else ""),
        "MOUNTS": indent(program.mounts, " " * 12) + MOUNTS,
        "VOLUMES": indent(program.volumes, " " * 8) + VOLUMES,
    }
    return f"---\n{_maker(program)}{filled(PODS, places)}"


def _maker(program: Program) -> str:
    """What makes the pods, down to their template."""
    if not program.made_by:
        return DEPLOYMENT
    head, _, spec = program.made_by.partition("spec:\n")
    other = f"{head}{METADATA}spec:\n{spec}"
    chosen = f"{{{{- if $values.set }}}}\n{other}"
    return f"{chosen}{{{{- else }}}}\n{DEPLOYMENT}{{{{- end }}}}\n"


def _ports(program: Program, number: str, target: str, *, indent: int) -> str:
    margin = " " * indent
    lines = []
    for name in program.ports:
        lines.append(f"{margin}- name: {name}")
        lines.append(f"{margin}  {number}: {{{{ $values.ports.{name} }}}}")
        if target:
            lines.append(f"{margin}  {target}: {name}")
    return "\n".join(lines) + "\n"


def _roles(program: Program) -> str:
    """Its roles: at home, in the whole cluster, and where it serves."""
    cluster, home = _rules(program, "cluster"), _rules(program, "home")
    served = _rules(program, "served")
    if not served:
        return _role(cluster, wide=True) + _role(home, wide=False)
    return (
        "{{- if $values.everywhere }}\n"
        f"{_role(cluster + served, wide=True)}{_role(home, wide=False)}"
        "{{- else }}\n"
        f"{_role(cluster, wide=True)}{_role(home + served, wide=False)}"
        "{{- end }}\n"
    )


def _rules(program: Program, place: Place) -> list[dict[str, Any]]:
    return [each.plain() for each in program.rights if each.place == place]


def _role(rules: list[dict[str, Any]], *, wide: bool) -> str:
    if not rules:
        return ""
    # Releases of one name may be in several namespaces.
    home = "{{ $.Release.Namespace }}"
    return role(
        yaml.safe_dump(rules, sort_keys=False),
        name=f"{{{{ $name }}}}-{home}" if wide else "{{ $name }}",
        account="{{ $name }}",
        namespace="" if wide else home,
        labels=indent(LABELS, "    "),
    )
