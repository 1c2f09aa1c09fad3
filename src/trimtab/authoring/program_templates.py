"""The templates of a chart's programs: each a Deployment with what belongs to it."""

from __future__ import annotations

from textwrap import indent
from typing import Any, Final

import yaml

from trimtab.runtime.programs import Place, Program

COMMON: Final[dict[str, Any]] = {
    "enabled": False,
    "replicas": 1,
    "log": "info",
    "resources": {
        "requests": {"cpu": "100m", "memory": "128Mi"},
        "limits": {"memory": "1Gi"},
    },
    "podAnnotations": {},
    "podLabels": {},
    "nodeSelector": {},
    "tolerations": [],
    "affinity": {},
    "env": [],
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

PODS: Final = f"""\
  template:
    metadata:
      labels:
{indent(LABELS, "        ")}@LABELS@
        {{{{- with $values.podLabels }}}}
        {{{{- toYaml . | nindent 8 }}}}
        {{{{- end }}}}
      {{{{- with $values.podAnnotations }}}}
      annotations:
        {{{{- toYaml . | nindent 8 }}}}
      {{{{- end }}}}
    spec:
      serviceAccountName: {{{{ $name }}}}
      {{{{- with $.Values.imagePullSecrets }}}}
      imagePullSecrets:
        {{{{- toYaml . | nindent 8 }}}}
      {{{{- end }}}}
      terminationGracePeriodSeconds: @GRACE@
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: @NAME@
          image: "{{{{ $.Values.image.repository }}}}:{{{{ $.Values.image.tag | \
default $.Chart.AppVersion }}}}"
          imagePullPolicy: {{{{ $.Values.image.pullPolicy }}}}
          args:
@ARGUMENTS@
            - --log={{{{ $values.log }}}}
          env:
@ENV@
            {{{{- with $values.env }}}}
            {{{{- toYaml . | nindent 12 }}}}
            {{{{- end }}}}
@PORTS@
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop:
                - ALL
          {{{{- with $values.resources }}}}
          resources:
            {{{{- toYaml . | nindent 12 }}}}
          {{{{- end }}}}
          volumeMounts:
            - name: tmp
              mountPath: /tmp
@MOUNTS@
            {{{{- with $values.volumeMounts }}}}
            {{{{- toYaml . | nindent 12 }}}}
            {{{{- end }}}}
      volumes:
        - name: tmp
          emptyDir: {{}}
@VOLUMES@
        {{{{- with $values.volumes }}}}
        {{{{- toYaml . | nindent 8 }}}}
        {{{{- end }}}}
      {{{{- with $values.nodeSelector }}}}
      nodeSelector:
        {{{{- toYaml . | nindent 8 }}}}
      {{{{- end }}}}
      {{{{- with $values.affinity }}}}
      affinity:
        {{{{- toYaml . | nindent 8 }}}}
      {{{{- end }}}}
      {{{{- with $values.tolerations }}}}
      tolerations:
        {{{{- toYaml . | nindent 8 }}}}
      {{{{- end }}}}
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
    for word, text in (
        ("@NAME@", program.name),
        ("@KEY@", program.name),
        ("@GRACE@", str(program.grace)),
        ("@PROBED@", program.probed),
    ):
        made = made.replace(word, text)
    return made


def _deployment(program: Program) -> str:
    ports = ""
    if program.ports:
        numbered = _ports(program, "containerPort", "", indent=12)
        ports = f"          ports:\n{numbered}"
    made = f"---\n{_maker(program)}{PODS}"
    for place, text in (
        ("LABELS", indent(program.labels, " " * 8)),
        ("ARGUMENTS", indent(program.arguments, " " * 12)),
        ("ENV", indent(program.env, " " * 12)),
        ("PORTS", ports + (PROBES if program.probed else "")),
        ("MOUNTS", indent(program.mounts, " " * 12)),
        ("VOLUMES", indent(program.volumes, " " * 8)),
    ):
        made = made.replace(f"@{place}@\n", text)
    return made


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
    kind = "ClusterRole" if wide else "Role"
    # Releases of one name may be in several namespaces.
    name = "{{ $name }}-{{ $.Release.Namespace }}" if wide else "{{ $name }}"
    where = "" if wide else "  namespace: {{ $.Release.Namespace }}\n"
    labels = indent(LABELS, "    ")
    metadata = f"metadata:\n  name: {name}\n{where}  labels:\n{labels}"
    group = "rbac.authorization.k8s.io"
    text = yaml.safe_dump(rules, sort_keys=False)
    return (
        f"---\napiVersion: {group}/v1\nkind: {kind}\n{metadata}rules:\n{text}"
        f"---\napiVersion: {group}/v1\nkind: {kind}Binding\n{metadata}"
        f"roleRef:\n  apiGroup: {group}\n  kind: {kind}\n  name: {name}\n"
        "subjects:\n  - kind: ServiceAccount\n    name: {{ $name }}\n"
        "    namespace: {{ $.Release.Namespace }}\n"
    )
