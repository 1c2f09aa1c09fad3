"""The NetworkPolicies of a chart: each pod is let what its program really does.

Everybody may ask DNS, and whoever has rights the API server; what calls a program of
the release may; pods of the same namespace, and whom the values add, may come in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from trimtab.authoring.chart_templates import METADATA as OPERATOR
from trimtab.authoring.program_templates import METADATA as PROGRAM
from trimtab.runtime.programs import Program

POLICY: Final = """\
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
{metadata}spec:
  podSelector:
    matchLabels:
{selector}
  policyTypes:
    - Ingress
    - Egress
  ingress:
{ingress}
  egress:
    - ports:
        - port: 53
          protocol: UDP
        - port: 53
          protocol: TCP
{egress}
    {{{{- with $.Values.networkPolicy.egress }}}}
    {{{{- toYaml . | nindent 4 }}}}
    {{{{- end }}}}
"""

NEIGHBOURS: Final = """\
      from:
        - podSelector: {}
        {{- with $.Values.networkPolicy.from }}
        {{- toYaml . | nindent 8 }}
        {{- end }}"""

# Its address is in no pod and no namespace.
API_SERVER: Final = """\
    - ports:
        {{- range $.Values.networkPolicy.apiServerPorts }}
        - port: {{ . }}
          protocol: TCP
        {{- end }}"""

INPUTS: Final = """\
    {{- if @WHEN@ }}
    - ports:
        {{- range $.Values.networkPolicy.inputPorts }}
        - port: {{ . }}
          protocol: TCP
        {{- end }}
    {{- end }}"""


def values_of(programs: Iterable[Program]) -> dict[str, Any]:
    """The values, each with its default."""
    ports = {"apiServerPorts": [443, 6443]}
    if any(each.fetches for each in programs):
        ports["inputPorts"] = [80, 443]
    return {"enabled": False, **ports, "from": [], "egress": []}


def template(programs: Iterable[Program], *, asked: bool, switched: str) -> str:
    """All of them; ``switched`` is what the operator's own depends on."""
    own = _operator(asked=asked)
    if switched:
        own = f"{{{{- if {switched} }}}}\n{own}{{{{- end }}}}\n"
    others = "".join(map(_program, programs))
    return f"{{{{- if .Values.networkPolicy.enabled }}}}\n{own}{others}{{{{- end }}}}\n"


def _operator(*, asked: bool) -> str:
    ingress = [_open("http")]
    if asked:
        # Whoever asks webhooks is no pod.
        ingress.append(
            "    - ports:\n        - port: webhooks\n          protocol: TCP"
        )
    return POLICY.format(
        metadata=OPERATOR,
        selector='      {{- include "operator.selector" . | nindent 6 }}',
        ingress="\n".join(ingress),
        egress=API_SERVER,
    )


def _program(program: Program) -> str:
    egress = [API_SERVER] if any(r.place != "home" for r in program.rights) else []
    if program.fetches:
        egress.append(INPUTS.replace("@WHEN@", program.fetches))
    egress += [_call(name, port) for name, port in program.calls]
    ingress = "\n".join(map(_open, program.ports)) or "    []"
    made = POLICY.format(
        metadata=PROGRAM,
        selector=_selector(program.name, margin=6),
        ingress=ingress,
        egress="\n".join(egress),
    )
    head = (
        f"{{{{- if .Values.{program.name}.enabled }}}}\n"
        f'{{{{- $name := printf "%s-{program.name}" (include "operator.name" .) }}}}\n'
    )
    return head + made.replace("@NAME@", program.name) + "{{- end }}\n"


def _open(port: str) -> str:
    return (
        f"    - ports:\n        - port: {port}\n          protocol: TCP\n{NEIGHBOURS}"
    )


def _call(name: str, port: str) -> str:
    return (
        "    - to:\n        - podSelector:\n            matchLabels:\n"
        f"{_selector(name, margin=14)}\n"
        f"      ports:\n        - port: {port}\n          protocol: TCP"
    )


def _selector(name: str, *, margin: int) -> str:
    space = " " * margin
    return (
        f"{space}app.kubernetes.io/name: {{{{ $.Chart.Name }}}}-{name}\n"
        f"{space}app.kubernetes.io/instance: {{{{ $.Release.Name }}}}"
    )
