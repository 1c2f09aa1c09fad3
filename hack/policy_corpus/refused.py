"""Refused: policies and bindings that no server takes, and some that are just right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.policy_corpus.bodies import (
    JSON,
    apply,
    check,
    mutating,
    mutating_binding,
    patch,
    rule,
    validating,
    validating_binding,
)

NAME = "tried.example.com"


def refused() -> Iterator[JSON]:
    """Every object, in a fixed order."""
    yield from _policies()
    yield from _expressions()
    yield from _matches()
    yield from _changes()
    yield from _bindings()


def _policy(*checks: JSON, **spec: Any) -> JSON:
    return validating(NAME, *(checks or (check("true"),)), **spec)


def _policies() -> Iterator[JSON]:
    yield validating(NAME)
    yield validating("Bad_Name", check("true"))
    yield validating("one.static.k8s.io", check("true"))
    yield mutating_binding("one.static.k8s.io")
    yield _policy(failurePolicy="Maybe")
    yield _policy(failurePolicy="Ignore")
    yield _policy(matchConstraints=None)
    yield _policy(matchConstraints={})
    for kind in (
        {"apiVersion": "", "kind": ""},
        {"apiVersion": "a/b/c", "kind": "Thing"},
        {"apiVersion": "/v1", "kind": "Thing"},
        {"apiVersion": "BAD/v1", "kind": "Thing"},
        {"apiVersion": "good.example.com/", "kind": "Thing"},
        {"apiVersion": "good.example.com/1v", "kind": "Thing_"},
        {"apiVersion": "v1", "kind": "ConfigMap"},
    ):
        yield _policy(paramKind=kind)
    yield _policy(matchConditions=[{"name": "", "expression": ""}])
    yield _policy(matchConditions=[{"name": "a b", "expression": " tru "}])
    twice = {"name": "one", "expression": "true"}
    yield _policy(matchConditions=[twice, twice])
    yield _policy(
        matchConditions=[{"name": f"n{i}", "expression": "true"} for i in range(65)]
    )
    condition = {"name": "one", "expression": "params.x == 1"}
    yield _policy(matchConditions=[condition])
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    yield _policy(matchConditions=[condition], paramKind=kind)
    using = {"name": "one", "expression": "variables.x"}
    variable = {"name": "x", "expression": "true"}
    yield _policy(matchConditions=[using], variables=[variable])
    for name in ("", " ", "1a", "a-b", "in", "namespace", "ok"):
        yield _policy(variables=[{"name": name, "expression": "1"}])
    for text in ("", " ", "1 +", "nobody", "variables.later"):
        yield _policy(variables=[{"name": "x", "expression": text}])
    note = {"key": "note", "valueExpression": "'a'"}
    yield validating(NAME, auditAnnotations=[note])
    yield validating(NAME, auditAnnotations=[note, note])
    yield validating(NAME, auditAnnotations=[{**note, "key": "a b"}])
    for text in ("", "1", "null", "'a' +", "object.x", "'" + "a" * 5200 + "'"):
        yield validating(NAME, auditAnnotations=[{**note, "valueExpression": text}])
    many = [{"key": f"k{i}", "valueExpression": "'a'"} for i in range(21)]
    yield validating(NAME, auditAnnotations=many)


def _expressions() -> Iterator[JSON]:
    for text in (
        *("", " ", "1", "object.spec.x", "object.spec.x == ", "object.spec.x == 1"),
        *("nobody", "params.x", "variables.x == 1", "request.nothing == 1"),
        *("request.dryRun", "request.options.x == 1", "request.kind.kind == 1"),
        *("namespaceObject.metadata.labels['a'] == 'b'", "namespaceObject.data == 1"),
        *("namespaceObject.metadata.UID == ''", "namespaceObject.metadata.uid == ''"),
        *("authorizer.requestResource.check('get').allowed()", "authorizer == null"),
        *("authorizer.path('/x').check('get').reason() == ''", "authorizer.x"),
        *("authorizer.group('').resource('x').check('get')", "authorizer.nope()"),
        *("Object{} == null", "JSONPatch{}", "jsonpatch.escapeKey('a') == 'b'"),
        *("int('x') == 1", "'a'.matches('[')", "duration('x') < duration('1s')"),
        *("[1, 'a'].size() > 0", "'%d'.format(['a']) == ''", "object.a.b(1)"),
        "object.spec.containers.all(c, c.image.startsWith('x')) &&\n  nobody",
    ):
        yield _policy(check(text))
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    yield _policy(check("params.data.x == 'y'"), paramKind=kind)
    known = {"name": "x", "expression": "1"}
    other = {"name": "y", "expression": "[variables.x + 1, 2]"}
    for text in ("variables.x == 1", "variables.y[0] == 'a'", "variables.z == 1"):
        yield _policy(check(text), variables=[known, other])
    unknown = {"name": "x", "expression": "object.spec"}
    yield _policy(check("variables.x.y.z == 1"), variables=[unknown])
    broken = {"name": "x", "expression": "1 + 'a'"}
    yield _policy(check("variables.x == 1"), variables=[broken])
    for text in (" ", "1", "'a' +", "authorizer.path('/').check('x').reason()", "'a'"):
        yield _policy(check("true", messageExpression=text))
    for text in (" ", "a\nb", "a", "a \n"):
        yield _policy(check("true", message=text))
    for reason in ("Unauthorized", "Forbidden", "Invalid", "NotFound", ""):
        yield _policy(check("true", reason=reason))


def _matches() -> Iterator[JSON]:
    for field, value in (
        ("apiGroups", []),
        ("apiGroups", ["*", "a"]),
        ("apiVersions", []),
        ("apiVersions", ["", "*"]),
        ("operations", []),
        ("operations", ["*", "CREATE"]),
        ("operations", ["READ"]),
        ("operations", ["CONNECT", "DELETE"]),
        ("resources", []),
        ("resources", [""]),
        ("resources", ["*/*", "pods"]),
        ("resources", ["pods/*", "pods/status"]),
        ("resources", ["*/status", "pods/status", "*", "pods"]),
        ("scope", "Everywhere"),
        ("scope", "Cluster"),
        ("resourceNames", ["a", "a", "..", "a/b"]),
    ):
        given = {"resourceRules": [rule(**{field: value})]}
        yield _policy(matchConstraints=given)
    bad = {"matchLabels": {"a b": "c"}, "matchExpressions": [{"key": "a"}]}
    expression = {"key": "a", "operator": "In"}
    for more in (
        {"matchPolicy": "Some"},
        {"matchPolicy": "Exact"},
        {"namespaceSelector": bad},
        {"objectSelector": {"matchExpressions": [expression]}},
        {"excludeResourceRules": [rule(operations=["READ"])]},
    ):
        yield _policy(matchConstraints={"resourceRules": [rule()], **more})


def _changes() -> Iterator[JSON]:
    def changing(*changes: JSON, **spec: Any) -> JSON:
        return mutating(NAME, *(changes or (apply("Object{}"),)), **spec)

    yield mutating(NAME)
    yield changing()
    yield changing(reinvocationPolicy="")
    yield changing(reinvocationPolicy="Always")
    yield changing(reinvocationPolicy="IfNeeded")
    yield changing(failurePolicy="Maybe")
    deleting = rule(operations=["CREATE", "DELETE"])
    yield changing(matchConstraints={"resourceRules": [deleting]})
    yield changing({"patchType": ""})
    yield changing({"patchType": "Merge"})
    yield changing({"patchType": "JSONPatch"})
    yield changing({"patchType": "ApplyConfiguration"})
    yield changing({**apply("Object{}"), "jsonPatch": {"expression": "[]"}})
    yield changing({**patch("[]"), "applyConfiguration": {"expression": "x"}})
    for text in (
        *("", "1", "Object", "Object{", "object", "Object{spec: 1}", "Objects{}"),
        *("Object{spec: Object.spec{replicas: 1 + 'a'}}", "Object.spec{}"),
        *("Object{metadata: Object.metadata{labels: {'a': 'b'}}}", "{'a': 1}"),
        *("has(object.x) ? Object{} : Object{}", "true ? Object{} : Object.spec{}"),
        *("Object{?spec: optional.of(1)}", "Object{?spec: 1}", "JSONPatch{op: 'add'}"),
    ):
        yield changing(apply(text))
    for text in (
        *("", "[]", "[JSONPatch{op: 'add', path: '/a', value: 1}]", "JSONPatch{}"),
        *("[JSONPatch{op: 1}]", "[JSONPatch{nope: 1}]", "[Object{}]", "['a']"),
        *("[JSONPatch{op: 'add', path: jsonpatch.escapeKey('a')}]", "[1, 'a']"),
        *("['a'].map(x, JSONPatch{op: 'remove', path: x})", "[?optional.none()]"),
        *("object.x.map(x, JSONPatch{op: 'remove', path: x})", "dyn([])"),
    ):
        yield changing(patch(text))
    variable = {"name": "x", "expression": "Object{}"}
    yield changing(variables=[variable])
    named = {"name": "x", "expression": "'a'"}
    using = "Object{metadata: Object.metadata{name: variables.x}}"
    yield changing(apply(using), variables=[named])


def _bindings() -> Iterator[JSON]:
    def bound(**spec: Any) -> JSON:
        return validating_binding(NAME, **spec)

    yield bound()
    yield bound(policyName="")
    yield bound(policyName="Bad_Name")
    for actions in (
        *([], ["Deny", "Warn"], ["Deny", "Deny"], ["Nothing"]),
        *(["Audit", "Warn"], ["Deny", "Audit"]),
    ):
        yield bound(validationActions=actions)
    selector: JSON = {"matchLabels": {"a": "b"}}
    for param in (
        {},
        {"name": "a"},
        {"name": "a", "parameterNotFoundAction": "Maybe"},
        {"name": "a/b", "parameterNotFoundAction": "Deny"},
        {"name": "a", "selector": selector, "parameterNotFoundAction": "Deny"},
        {"selector": selector, "parameterNotFoundAction": "Allow"},
        {"selector": {}, "namespace": "x", "parameterNotFoundAction": "Allow"},
        {"selector": {"matchLabels": {"a": "b c"}}, "parameterNotFoundAction": "Allow"},
        {"namespace": "x", "parameterNotFoundAction": "Allow"},
    ):
        yield bound(paramRef=param)
        yield mutating_binding(NAME, paramRef=param)
    yield bound(matchResources={})
    yield bound(matchResources={"resourceRules": [rule(operations=["READ"])]})
    deleting = {"resourceRules": [rule(operations=["DELETE"])]}
    yield bound(matchResources=deleting)
    yield mutating_binding(NAME, matchResources=deleting)
    yield mutating_binding(NAME, policyName="")
    yield mutating_binding(NAME)
