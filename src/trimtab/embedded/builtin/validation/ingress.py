"""Ingresses and their classes: how requests from outside find Services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import meta, services, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_CLASS: Final = "kubernetes.io/ingress.class"
_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_SUFFIXES: Final = ("/..", "/.")
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")


def create(found: Found, obj: JSON) -> None:
    _ingress(found, obj, loose=False)
    name = obj["spec"].get("ingressClassName")
    noted = (obj["metadata"].get("annotations") or {}).get(_CLASS)
    if noted is not None and name is not None and noted != name:
        detail = "must match `ingressClassName` when both are specified"
        found.invalid(f"annotations.{_CLASS}", noted, detail)


def update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    names = (each.get("secretName") or "a" for each in old["spec"].get("tls") or ())
    _ingress(found, obj, loose=any(texts.subdomain(each) for each in names))


def _ingress(found: Found, obj: JSON, *, loose: bool) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    spec = obj["spec"]
    rules = spec.get("rules")
    if not rules and "defaultBackend" not in spec:
        detail = "either `defaultBackend` or `rules` must be specified"
        found.invalid("spec", rules, detail)
    if "defaultBackend" in spec:
        _backend(found, spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(rules or ()):
        _rule(found, rule, f"spec.rules[{index}]")
    for index, each in enumerate(spec.get("tls") or ()):
        _tls(found, each, f"spec.tls[{index}]", loose=loose)
    name = spec.get("ingressClassName")
    if name is not None:
        found.each("spec.ingressClassName", name, texts.subdomain(name))


def _host(found: Found, host: str, path: str) -> None:
    check = texts.wildcard_subdomain if "*" in host else texts.subdomain
    found.each(path, host, check(host))


def _rule(found: Found, rule: JSON, path: str) -> None:
    host = rule.get("host", "")
    if host:
        if texts.parse_ip(host) is not None:
            detail = "must be a DNS name, not an IP address"
            found.invalid(f"{path}.host", host, detail)
        _host(found, host, f"{path}.host")
    if "http" not in rule:
        return
    paths = rule["http"]["paths"] or ()
    if not paths:
        found.required(f"{path}.http.paths")
    for index, each in enumerate(paths):
        _path(found, each, f"{path}.http.paths[{index}]")


def _path(found: Found, given: JSON, path: str) -> None:
    kind, value = given.get("pathType"), given.get("path", "")
    if kind is None:
        found.required(f"{path}.pathType", "pathType must be specified")
        return
    where = f"{path}.path"
    if kind in ("Exact", "Prefix"):
        if not value.startswith("/"):
            found.invalid(where, value, "must be an absolute path")
        for each in _SEQUENCES:
            if each in value:
                found.invalid(where, value, f"must not contain '{each}'")
        for each in _SUFFIXES:
            if value.endswith(each):
                found.invalid(where, value, f"cannot end with '{each}'")
    elif kind == "ImplementationSpecific":
        if value and not value.startswith("/"):
            found.invalid(where, value, "must be an absolute path")
    else:
        found.unsupported(f"{path}.pathType", kind, _PATH_TYPES)
    _backend(found, given["backend"], f"{path}.backend")


def _backend(found: Found, given: JSON, path: str) -> None:
    resource, service = given.get("resource"), given.get("service")
    if resource is not None and service is not None:
        found.invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        _reference(found, resource, f"{path}.resource")
    elif service is not None:
        _service(found, service, path)
    else:
        found.invalid(path, "", "resource or service backend is required")


def _service(found: Found, service: JSON, path: str) -> None:
    name = service["name"]
    if not name:
        found.required(f"{path}.service.name")
    else:
        found.each(f"{path}.service.name", name, texts.label(name))
    port = service.get("port") or {}
    named, number = port.get("name", ""), port.get("number", 0)
    if named and number:
        found.invalid(path, "", "cannot set both port name & port number")
    elif named:
        found.each(f"{path}.service.port.name", named, texts.port_name(named))
    elif number:
        if not 1 <= number <= 65535:
            where = f"{path}.service.port.number"
            found.invalid(where, number, texts.PORT_RANGE)
    else:
        found.required(path, "port name or number is required")


def _reference(found: Found, given: JSON, path: str) -> None:
    group = given.get("apiGroup")
    if group is not None:
        found.each(f"{path}.apiGroup", group, texts.subdomain(group))
    for field in ("kind", "name"):
        value = given[field]
        if not value:
            found.required(f"{path}.{field}")
        else:
            found.each(f"{path}.{field}", value, texts.path_segment(value))


def _tls(found: Found, given: JSON, path: str, *, loose: bool) -> None:
    for index, host in enumerate(given.get("hosts") or ()):
        _host(found, host, f"{path}.hosts[{index}]")
    name = given.get("secretName", "")
    if name and not loose:
        found.each(f"{path}.secretName", name, texts.subdomain(name))


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    given = obj["status"].get("loadBalancer", {}).get("ingress") or []
    known = old["status"].get("loadBalancer", {}).get("ingress") or ()
    addresses = {each.get("ip") for each in known}
    path = "status.loadBalancer.ingress"
    services.load_balancer(found, given, addresses, path, modes=False)


def create_class(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.subdomain)
    controller, path = obj["spec"].get("controller", ""), "spec.controller"
    if len(controller) > 250:
        found.too_long(path, 250)
    domain, slash, rest = controller.partition("/")
    if not controller:
        found.required(path)
    elif not slash or not domain or not rest:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        found.invalid(path, controller, detail)
    else:
        found.each(path, domain, texts.subdomain(domain))
    if "parameters" in obj["spec"]:
        _parameters(found, obj["spec"]["parameters"], "spec.parameters")


def _parameters(found: Found, given: JSON, path: str) -> None:
    _reference(found, given, path)
    scope, namespace = given.get("scope"), given.get("namespace")
    if scope not in ("Cluster", "Namespace"):
        found.unsupported(f"{path}.scope", scope, ("Cluster", "Namespace"))
    elif scope == "Namespace":
        if namespace is None:
            detail = "`parameters.scope` is set to 'Namespace'"
            found.required(f"{path}.namespace", detail)
        else:
            found.each(f"{path}.namespace", namespace, texts.label(namespace))
    elif namespace is not None:
        detail = "`parameters.scope` is set to 'Cluster'"
        found.forbidden(f"{path}.namespace", detail)


def update_class(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    new, before = obj["spec"].get("controller", ""), old["spec"].get("controller", "")
    found.immutable("spec.controller", new, before)
    create_class(found, obj)
