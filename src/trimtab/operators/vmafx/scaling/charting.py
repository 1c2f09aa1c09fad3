"""What scale to demand and monitoring add to the chart: templates for Helm."""

from __future__ import annotations

import json
from textwrap import indent
from typing import Final

import yaml

from trimtab.operators.vmafx.kinds import GATEWAY_NAME
from trimtab.operators.vmafx.scaling import alerts, external
from trimtab.operators.vmafx.scaling.alerts import Objectives

_VALUE: Final = "{{ $values.rules.objectives.@ }}"
_WISHED: Final = Objectives(
    job_success=_VALUE.replace("@", "jobSuccess"),
    score_success=_VALUE.replace("@", "scoreSuccess"),
    score_latency=_VALUE.replace("@", "scoreLatency"),
    # A bound of a histogram is written with its decimal.
    score_latency_seconds='{{ printf "%.1f" '
    "(float64 $values.rules.objectives.scoreLatencySeconds) }}",
    queue_age_seconds=_VALUE.replace("@", "queueAgeSeconds"),
    regression_points=_VALUE.replace("@", "regressionPoints"),
    regression_scores=_VALUE.replace("@", "regressionScores"),
    per_job=_VALUE.replace("@", "costPerJob"),
    per_job_second=_VALUE.replace("@", "costPerJobSecond"),
    jobs='{{ include "operator.name" $ }}.*',
    runbooks="{{ $values.rules.runbooks }}",
)

_LABELS: Final = """\
  labels:
    {{- include "operator.labels" $ | nindent 4 }}
"""

# A gateway that makes its own certificate publishes who vouches for it when it has
# started: a chart that is upgraded finds that.
_SERVICE: Final = f"""\
{{{{- if $values.externalMetrics.enabled }}}}
{{{{- $published := lookup "v1" "ConfigMap" $.Release.Namespace "{GATEWAY_NAME}" }}}}
{{{{- $found := dig "data" "ca.crt" "" $published }}}}
{{{{- $ca := default $found $values.externalMetrics.caBundle }}}}
{{{{- if not (or $ca $values.externalMetrics.insecure) }}}}
{{{{- fail "gateway.externalMetrics.caBundle is empty, and no gateway has published who\
 vouches for it yet: install first and enable the metrics then, name the authority, or \
set gateway.externalMetrics.insecure." }}}}
{{{{- end }}}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.{external.GROUP}
{_LABELS}spec:
  group: {external.GROUP}
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  service:
    name: {{{{ $name }}}}
    namespace: {{{{ $.Release.Namespace }}}}
    port: {{{{ $values.ports.http }}}}
  {{{{- if $ca }}}}
  caBundle: {{{{ $ca | b64enc }}}}
  {{{{- else }}}}
  insecureSkipTLSVerify: true
  {{{{- end }}}}
{{{{- end }}}}
"""

AUTOSCALER: Final = """\
{{- if $values.autoscaling.enabled }}
{{- if not (and $values.set $.Values.gateway.externalMetrics.enabled) }}
{{- fail "node.autoscaling needs node.set and gateway.externalMetrics.enabled: it \
scales a set by what the gateway tells." }}
{{- end }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  namespace: {{ $.Release.Namespace }}
  labels:
    {{- include "operator.labels" $ | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: vmafx.dev/v1
    kind: VmafxNodeSet
    name: {{ $name }}
  minReplicas: {{ $values.autoscaling.minReplicas }}
  maxReplicas: {{ $values.autoscaling.maxReplicas }}
  metrics:
    - type: External
      external:
        metric:
          name: vmafx_queue_demand
          {{- with $values.autoscaling.selector }}
          selector:
            {{- toYaml . | nindent 12 }}
          {{- end }}
        target:
          type: AverageValue
          averageValue: {{ $values.autoscaling.jobsPerNode | quote }}
{{- end }}
"""
"""What scales a set of nodes by what the gateway tells."""


def gateway() -> str:
    """What comes with a gateway: its APIService, its rules and its dashboard."""
    return _SERVICE + _rules() + _dashboard()


def _rules() -> str:
    spec = yaml.safe_dump(alerts.document(_WISHED), sort_keys=False, width=1000)
    return (
        "{{- if $values.rules.enabled }}\n---\n"
        "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n"
        f"{_metadata('rules')}spec:\n{indent(spec, '  ')}{{{{- end }}}}\n"
    )


def _dashboard() -> str:
    page = json.dumps(alerts.dashboard(), indent=1)
    # What Grafana fills in is none of Helm's business.
    raw = page.replace("{{", "\0").replace("}}", "{{`}}`}}").replace("\0", "{{`{{`}}")
    return (
        "{{- if $values.dashboard.enabled }}\n---\napiVersion: v1\nkind: ConfigMap\n"
        f"{_metadata('dashboard')}data:\n  vmafx.json: |\n{indent(raw, '    ')}\n"
        "{{- end }}\n"
    )


def _metadata(part: str) -> str:
    """Of an object that others look for by labels of theirs."""
    return (
        f"metadata:\n  name: {{{{ $name }}}}-{part}\n"
        "  namespace: {{ $.Release.Namespace }}\n"
        f"{_LABELS}"
        f"    {{{{- with $values.{part}.labels }}}}\n"
        "    {{- toYaml . | nindent 4 }}\n    {{- end }}\n"
    )
