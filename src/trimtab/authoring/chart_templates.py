"""The templates of a chart: what Helm fills in when somebody installs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from trimtab.authoring import pod_templates
from trimtab.authoring.pod_templates import PODS, filled

HOME: Final = "{{ .Release.Namespace }}"
"""Where the release is installed, and keeps its lease."""

COMMENTS: Final = {
    "image": "The tag is the chart's appVersion, unless one is named.",
    "source": "What `trimtab run` runs in the container: a file or a module.",
    "replicas": "More than one needs leaderElection.",
    "leaderElection": "Whether the replicas elect one that works.",
    "namespaces": "The only namespaces to work in, with Roles there and no "
    "ClusterRole; empty is the whole cluster.",
    "log": "debug, info, warning or error.",
    "port": "Where health and metrics are served.",
    "env": "More environment variables of the container.",
    "serviceMonitor": "For the Prometheus operator.",
    "operator": "Whether the operator itself is installed; each program says it of "
    "itself.",
    "networkPolicy": "Whether pods may only do what they have to; `from` are more "
    "peers that may call them, `egress` more rules of what they may call.",
    "webhooks": "Where webhooks are served; with a Secret that cert-manager fills, its "
    "certificates, and with NAMESPACE/NAME of the Certificate, its injection.",
}


def values(given: dict[str, Any], comments: Mapping[str, str] | None = None) -> str:
    """``values.yaml``, with a comment where the name does not say it all."""
    known = {**COMMENTS, **(comments or {})}
    parts = []
    for key, value in given.items():
        if key in known:
            parts.append(f"# {known[key]}\n")
        parts.append(yaml.safe_dump({key: value}, sort_keys=False))
    return "".join(parts)


IGNORED: Final = ".git\n.DS_Store\n*.tmp\n"

HELPERS: Final = """\
{{- define "operator.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "operator.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "operator.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "operator.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
"""

INSTALLED: Final = """\
{{ .Chart.Name }} {{ .Chart.AppVersion }} is installed in {{ .Release.Namespace }}.
"""

ASKING: Final = """
  kubectl --namespace {{ .Release.Namespace }} rollout status \\
    deployment/{{ include "operator.name" . }}

Ask it about an object:

  kubectl --namespace {{ .Release.Namespace }} port-forward \\
    deployment/{{ include "operator.name" . }} {{ .Values.port }}
  trimtab why KIND NAME --url http://127.0.0.1:{{ .Values.port }}
"""

UPGRADES: Final = """
Helm installs CRDs once and never changes them. Before an upgrade, see what theirs would
change and apply them:

  trimtab crd FILE --check
  kubectl apply --server-side -f crds/
"""

METADATA: Final = """\
metadata:
  name: {{ include "operator.name" . }}
  namespace: {{ .Release.Namespace }}
  labels:
    {{- include "operator.labels" . | nindent 4 }}
"""

ACCOUNT: Final = """\
{{- if .Values.serviceAccount.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "operator.account" . }}
  namespace: {{ .Release.Namespace }}
  labels:
    {{- include "operator.labels" . | nindent 4 }}
  {{- with .Values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
"""

SERVICE: Final = f"""\
apiVersion: v1
kind: Service
{METADATA}spec:
  selector:
    {{{{- include "operator.selector" . | nindent 4 }}}}
  ports:
    - name: http
      port: {{{{ .Values.port }}}}
      targetPort: http
"""

WEBHOOK_PORT: Final = """\
    - name: webhooks
      port: 443
      targetPort: webhooks
"""

# With one replica it would only keep nodes from being drained.
BUDGET: Final = f"""\
{{{{- if gt (int .Values.replicas) 1 }}}}
apiVersion: policy/v1
kind: PodDisruptionBudget
{METADATA}spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{{{- include "operator.selector" . | nindent 6 }}}}
{{{{- end }}}}
"""

MONITOR: Final = f"""\
{{{{- if .Values.serviceMonitor.enabled }}}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
{METADATA}    {{{{- with .Values.serviceMonitor.labels }}}}
    {{{{- toYaml . | nindent 4 }}}}
    {{{{- end }}}}
spec:
  selector:
    matchLabels:
      {{{{- include "operator.selector" . | nindent 6 }}}}
  endpoints:
    - port: http
      path: /metrics
      interval: {{{{ .Values.serviceMonitor.interval }}}}
{{{{- end }}}}
"""

ALONE: Final = """\
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElection) }}
{{- fail "More than one replica without leader election would all work at once: set \
replicas to 1, or leaderElection to true." }}
{{- end }}
"""

NEVER: Final = """\
{{- if .Values.leaderElection }}
{{- fail "This operator elects no leader (Operator(leader=False)): set leaderElection \
to false." }}
{{- end }}
"""

DEPLOYMENT: Final = f"""\
apiVersion: apps/v1
kind: Deployment
{METADATA}spec:
  replicas: {{{{ .Values.replicas }}}}
  selector:
    matchLabels:
      {{{{- include "operator.selector" . | nindent 6 }}}}
  strategy:
    # Without a leader, the old one must be gone before the new one begins.
    type: {{{{ ternary "RollingUpdate" "Recreate" .Values.leaderElection }}}}
"""

# It stops within five seconds of being told.
GRACE: Final = 15

ARGUMENTS: Final = """\
            - run
            - {{ .Values.source | quote }}
            - --host=0.0.0.0
            - --port={{ .Values.port }}
            - --log={{ .Values.log }}
            {{- if not .Values.leaderElection }}
            - --no-leader
            {{- end }}
@ASKED@
            {{- with .Values.namespaces }}
            - --namespaces={{ join "," . }}
            {{- end }}
"""

ENV: Final = """\
          {{- with .Values.env }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
"""

PORTS: Final = """\
          ports:
            - name: http
              containerPort: {{ .Values.port }}
@ASKED@
          livenessProbe:
            httpGet:
              path: /livez
              port: http
          readinessProbe:
            httpGet:
              path: /readyz
              port: http
            periodSeconds: 5
"""


WEBHOOKS: Final = {
    "ARGUMENTS": """\
            - --webhook-service={{ include "operator.name" . }}
            - --webhook-port={{ .Values.webhooks.port }}
            {{- if .Values.webhooks.certificateSecret }}
            - --webhook-certificates=/certificates
            {{- end }}
            {{- with .Values.webhooks.injectFrom }}
            - --webhook-inject-from={{ . }}
            {{- end }}
""",
    "PORTS": """\
            - name: webhooks
              containerPort: {{ .Values.webhooks.port }}
""",
    "MOUNTS": """\
            {{- if .Values.webhooks.certificateSecret }}
            - name: certificates
              mountPath: /certificates
              readOnly: true
            {{- end }}
""",
    "VOLUMES": """\
        {{- with .Values.webhooks.certificateSecret }}
        - name: certificates
          secret:
            secretName: {{ . }}
        {{- end }}
""",
}
"""What a Deployment says more if its operator has webhooks, by place."""


def notes(*, by: str) -> str:
    """What Helm says at the end."""
    return INSTALLED + switched(ASKING, by=by) + UPGRADES


def deployment(*, elects: bool, asked: bool, optional: bool = False) -> str:
    """The Deployment; what must not be rendered fails here, whatever the schema."""
    by = ".Values.webhooks.enabled" if optional else ""
    more = {place: switched(text, by=by) for place, text in WEBHOOKS.items() if asked}
    places = {
        "LABELS": '        {{- include "operator.labels" . | nindent 8 }}\n',
        "VALUES": ".Values",
        "ACCOUNT": '{{ include "operator.account" . }}',
        "GRACE": str(GRACE),
        "CONTAINER": "operator",
        "ARGUMENTS": filled(ARGUMENTS, {"ASKED": more.get("ARGUMENTS", "")}),
        "ENV": ENV,
        "PORTS": filled(PORTS, {"ASKED": more.get("PORTS", "")}),
        "MOUNTS": more.get("MOUNTS", ""),
        "VOLUMES": more.get("VOLUMES", ""),
    }
    return ALONE + ("" if elects else NEVER) + DEPLOYMENT + filled(PODS, places)


def service(*, asked: bool, optional: bool = False) -> str:
    """The Service, for people, for Prometheus, and for API servers that ask."""
    port = switched(WEBHOOK_PORT, by=".Values.webhooks.enabled" if optional else "")
    return SERVICE + (port if asked else "")


def switched(text: str, *, by: str) -> str:
    """A template that is there only if a value is true; always, if there is none."""
    return f"{{{{- if {by} }}}}\n{text}{{{{- end }}}}\n" if by else text


def configuration(version: str, kind: str, name: str) -> str:
    """A configuration of webhooks, which goes when the release does."""
    return (
        f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n  labels:\n"
        '    {{- include "operator.labels" . | nindent 4 }}\n'
    )


def role(rules: str, *, place: str) -> str:
    """A role and its binding in a place; the empty one is the whole cluster."""
    # Releases of one name may be in several namespaces.
    name = '{{ include "operator.name" $ }}'
    if not place:
        name = f"{name}-{{{{ $.Release.Namespace }}}}"
    elif place == HOME:  # which may be one of the namespaces that are worked in
        name = f"{name}-home"
    return pod_templates.role(
        rules,
        name=name,
        account='{{ include "operator.account" $ }}',
        namespace=place,
        labels='    {{- include "operator.labels" $ | nindent 4 }}\n',
    )
