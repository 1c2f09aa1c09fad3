"""The templates of a chart's pods and roles, which its operator and programs share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

VALUES: Final[dict[str, Any]] = {
    "podAnnotations": {},
    "podLabels": {},
    "nodeSelector": {},
    "tolerations": [],
    "affinity": {},
    "env": [],
}
"""What can be said of all pods, with its default."""

PODS: Final = """\
  template:
    metadata:
      labels:
@LABELS@
        {{- with @VALUES@.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with @VALUES@.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: @ACCOUNT@
      {{- with $.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      terminationGracePeriodSeconds: @GRACE@
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: @CONTAINER@
          image: "{{ $.Values.image.repository }}:{{ $.Values.image.tag | \
default $.Chart.AppVersion }}"
          imagePullPolicy: {{ $.Values.image.pullPolicy }}
          args:
@ARGUMENTS@
@ENV@
@PORTS@
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop:
                - ALL
          {{- with @VALUES@.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          volumeMounts:
            - name: tmp
              mountPath: /tmp
@MOUNTS@
      volumes:
        - name: tmp
          emptyDir: {}
@VOLUMES@
      {{- with @VALUES@.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with @VALUES@.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with @VALUES@.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
"""
"""The pods of a Deployment: words between @ are filled in, whole lines or in a line."""

ROLE: Final = """\
---
apiVersion: rbac.authorization.k8s.io/v1
kind: @KIND@
@METADATA@
rules:
@RULES@
---
apiVersion: rbac.authorization.k8s.io/v1
kind: @KIND@Binding
@METADATA@
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: @KIND@
  name: @ROLE@
subjects:
  - kind: ServiceAccount
    name: @ACCOUNT@
    namespace: {{ $.Release.Namespace }}
"""


def filled(template: str, places: Mapping[str, str]) -> str:
    """A template with its places filled in; what takes a whole line may be nothing."""
    for place, text in places.items():
        template = template.replace(f"\n@{place}@\n", f"\n{text}")
        template = template.replace(f"@{place}@", text)
    return template


def role(rules: str, *, name: str, account: str, namespace: str, labels: str) -> str:
    """A role and its binding to an account; without a namespace, of the cluster."""
    where = f"  namespace: {namespace}\n" if namespace else ""
    places = {
        "METADATA": f"metadata:\n  name: {name}\n{where}  labels:\n{labels}",
        "RULES": rules,
        "KIND": "Role" if namespace else "ClusterRole",
        "ROLE": name,
        "ACCOUNT": account,
    }
    return filled(ROLE, places)
