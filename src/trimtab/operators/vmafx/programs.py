"""The gateway and the nodes, as the chart of the operator has them."""

from __future__ import annotations

from typing import Final

from trimtab.api.resource import Info
from trimtab.kinds import ConfigMap, Secret
from trimtab.operators.vmafx.kinds import GATEWAY_NAME, VmafxJob, VmafxNode
from trimtab.operators.vmafx.roles import NODE
from trimtab.operators.vmafx.scaling.kinds import LABEL_NODE
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenant
from trimtab.operators.vmafx.training.kinds import VmafxModelTraining
from trimtab.operators.vmafx.training.tokens import SECRET as TRAINERS
from trimtab.runtime.programs import Program, Right

_TOKENS: Final = Info(
    group="authentication.k8s.io",
    version="v1",
    kind="TokenReview",
    plural="tokenreviews",
    namespaced=False,
)
_ACCESS: Final = Info(
    group="authorization.k8s.io",
    version="v1",
    kind="SubjectAccessReview",
    plural="subjectaccessreviews",
    namespaced=False,
)

# Keys for s3://, if a Secret with them is named.
_S3_MOUNT: Final = """\
{{- if $values.s3Secret }}
- name: s3
  mountPath: /s3
  readOnly: true
{{- end }}
"""
_S3_VOLUME: Final = """\
{{- with $values.s3Secret }}
- name: s3
  secret:
    secretName: {{ . }}
{{- end }}
"""
_S3_ENV: Final = """\
{{- if $values.s3Secret }}
- name: VMAFX_S3_KEYS
  value: /s3
{{- end }}
"""


# What is promised, and from when on somebody is told: see scaling.alerts.
_OBJECTIVES: Final = {
    "jobSuccess": 0.99,
    "scoreSuccess": 0.99,
    "scoreLatency": 0.95,
    "scoreLatencySeconds": 30,
    "queueAgeSeconds": 900,
    "regressionPoints": 3.0,
    "regressionScores": 20,
    "costPerJob": 0.0,
    "costPerJobSecond": 0.0,
}


def _beside_gateway() -> str:
    # Here, because only a chart needs it.
    from trimtab.operators.vmafx.scaling import charting

    return charting.gateway()


def _beside_nodes() -> str:
    from trimtab.operators.vmafx.scaling import charting

    return charting.AUTOSCALER


GATEWAY: Final = Program(
    name="gateway",
    about="What nodes pull their jobs from, and clients call. Without roots, every "
    "input is refused; without a certificateSecret it makes its own certificates.",
    values={
        "everywhere": True,
        "roots": [],
        "tenants": False,
        "issuerSecret": "",
        "score": False,
        "certificateSecret": "",
        "s3Secret": "",
        "ports": {"grpc": 9090, "http": 8080},
        # Objects of scale to demand and of monitoring: see scaling.charting.
        "externalMetrics": {"enabled": False, "caBundle": "", "insecure": False},
        "rules": {
            "enabled": False,
            "labels": {},
            "runbooks": "docs/vmafx-scaling.md",
            "objectives": _OBJECTIVES,
        },
        "dashboard": {"enabled": False, "labels": {}},
    },
    ports=("grpc", "http"),
    probed="http",
    more=_beside_gateway,
    arguments="""\
- vmafx
- gateway
- --host=0.0.0.0
- --port={{ $values.ports.grpc }}
- --http={{ $values.ports.http }}
{{- if $values.certificateSecret }}
- --certificate=/certificates/tls.crt
- --key=/certificates/tls.key
{{- else }}
{{- $home := printf "%s.%s" $name $.Release.Namespace }}
- --names={{ $name }},{{ $home }},{{ $home }}.svc,{{ $home }}.svc.cluster.local
{{- end }}
{{- if $values.everywhere }}
- --everywhere
{{- end }}
{{- range $values.roots }}
- --root={{ . }}
{{- end }}
{{- if $values.tenants }}
- --tenants=objects
{{- end }}
{{- if $values.issuerSecret }}
- --issuer-ca=/issuers/ca.crt
{{- end }}
{{- if $values.score }}
- --score
{{- end }}
{{- if $values.externalMetrics.enabled }}
- --external-metrics
{{- end }}
""",
    env=_S3_ENV,
    mounts="""\
{{- if $values.certificateSecret }}
- name: certificates
  mountPath: /certificates
  readOnly: true
{{- end }}
{{- if $values.issuerSecret }}
- name: issuers
  mountPath: /issuers
  readOnly: true
{{- end }}
"""
    + _S3_MOUNT,
    volumes="""\
{{- with $values.certificateSecret }}
- name: certificates
  secret:
    secretName: {{ . }}
{{- end }}
{{- with $values.issuerSecret }}
- name: issuers
  secret:
    secretName: {{ . }}
{{- end }}
"""
    + _S3_VOLUME,
    rights=(
        Right(VmafxJob, ("get", "list", "watch", "create", "patch")),
        Right(VmafxJob, ("patch",), "status"),
        # The scores of a job's frames are its own, which blocks its deletion.
        Right(VmafxJob, ("update",), "finalizers"),
        # Those of its segments become those of a job.
        Right(ConfigMap, ("get", "create", "patch")),
        Right(VmafxModelTraining, ("list", "watch")),
        # Whoever writes these decides who is let in: those of its own namespace only.
        Right(VmafxTenant, ("list", "watch"), place="home"),
        Right(VmafxNode, ("get", "list", "watch", "create", "patch"), place="home"),
        Right(VmafxNode, ("patch",), "status", place="home"),
        Right(ConfigMap, ("create", "patch"), place="home"),
        Right(Secret, ("create",), place="home"),
        Right(Secret, ("get", "patch"), place="home", names=(f"{GATEWAY_NAME}-ca",)),
        # What the tokens of trainers are made of, which it tells to nodes.
        Right(Secret, ("get",), place="home", names=(TRAINERS,)),
        Right(_TOKENS, ("create",), place="cluster"),
        Right(_ACCESS, ("create",), place="cluster"),
    ),
    fetches="$.Values.gateway.score",
)

NODES: Final = Program(
    name="node",
    about="What scores. It works for the gateway of this release, or for another that "
    "is named as HOST:PORT.",
    values={
        "gateway": "",
        "slots": 1,
        "threads": 0,
        "cacheMiB": 1024,
        "s3Secret": "",
        "tokenSecret": "",
        "set": False,
        "drainSeconds": 20,
        "autoscaling": {
            "enabled": False,
            "minReplicas": 1,
            "maxReplicas": 10,
            "jobsPerNode": 1,
            "selector": {},
        },
    },
    labels=f'{LABEL_NODE}: "true"\n',
    made_by="""\
apiVersion: vmafx.dev/v1
kind: VmafxNodeSet
spec:
  {{- if not $values.autoscaling.enabled }}
  replicas: {{ $values.replicas }}
  {{- end }}
  drainSeconds: {{ $values.drainSeconds }}
""",
    more=_beside_nodes,
    arguments="""\
- vmafx
- node
- --gateway={{ $values.gateway | default (printf "%s-gateway:%v" \
(include "operator.name" $) $.Values.gateway.ports.grpc) }}
- --token={{ if $values.tokenSecret }}/token/token{{ else }}\
/var/run/secrets/kubernetes.io/serviceaccount/token{{ end }}
- --ca=/authority/ca.crt
- --slots={{ $values.slots }}
- --threads={{ $values.threads }}
{{- if $values.cacheMiB }}
- --cache=/cache/scores
- --cache-size={{ $values.cacheMiB }}
{{- end }}
""",
    env="""\
- name: VMAFX_NODE_ID
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
"""
    + _S3_ENV,
    mounts="""\
- name: authority
  mountPath: /authority
  readOnly: true
{{- if $values.tokenSecret }}
- name: token
  mountPath: /token
  readOnly: true
{{- end }}
{{- if $values.cacheMiB }}
- name: cache
  mountPath: /cache
{{- end }}
"""
    + _S3_MOUNT,
    volumes=f"""\
- name: authority
  {{{{- if $.Values.gateway.certificateSecret }}}}
  secret:
    secretName: {{{{ $.Values.gateway.certificateSecret }}}}
    items:
      - key: ca.crt
        path: ca.crt
  {{{{- else }}}}
  configMap:
    name: {GATEWAY_NAME}
  {{{{- end }}}}
{{{{- with $values.tokenSecret }}}}
- name: token
  secret:
    secretName: {{{{ . }}}}
{{{{- end }}}}
{{{{- with $values.cacheMiB }}}}
- name: cache
  emptyDir: {{}}
{{{{- end }}}}
"""
    + _S3_VOLUME,
    rights=(Right(NODE.kind, (NODE.verb,), place="home"),),
    calls=(("gateway", "grpc"),),
    fetches="true",
    # Twenty seconds for what runs, and then it gives back what is left.
    grace=60,
)
