"""Changing: mutating policies in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hack.policy_corpus.binding import definition
from hack.policy_corpus.bodies import JSON, apply, check, config, patch, rule
from hack.policy_corpus.scenarios import CRDS, NAME, Scenario

APPS = "/apis/apps/v1"


def changing() -> Iterator[Callable[[Scenario], None]]:
    """Every scenario, in a fixed order."""
    yield from (applied, merged, patched, unpatched, unapplied, lenient, composed)
    yield from (repeated, things, together)


def _deployment(name: str) -> JSON:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [
                        {"name": "main", "image": "x", "args": ["a", "b"]},
                        {"name": "other", "image": "y"},
                    ],
                    "tolerations": [{"key": "a", "operator": "Exists"}],
                },
            },
        },
    }


def applied(it: Scenario) -> None:
    it.mutating(
        apply(
            "Object{metadata: Object.metadata{labels: {'by': 'policy', "
            "'name': string(object.metadata.name)}}}"
        ),
        apply("Object{data: {'added': 'yes', 'key': 'changed'}}"),
    )
    it.config("one", {"key": "value"}, labels={"own": "yes"})
    it.config("two")
    it.ask("PATCH", f"{it.path()}/one", {"data": {"key": "again"}})


def merged(it: Scenario) -> None:
    pod = "Object.spec.template.spec"
    it.mutating(
        apply(
            "Object{spec: Object.spec{replicas: 3, template: "
            "Object.spec.template{spec: "
            f"{pod}{{containers: [{pod}.containers{{name: 'side', image: 'z'}}, "
            f"{pod}.containers{{name: 'main', imagePullPolicy: 'Never'}}]}}}}}}}}"
        ),
        rules=[rule("deployments", apiGroups=["apps"])],
    )
    it.create(_deployment("one"), "deployments", APPS)


def patched(it: Scenario) -> None:
    for part, text in (
        ("add", "[JSONPatch{op: 'add', path: '/data/new', value: 'x'}]"),
        (
            "many",
            (
                "[JSONPatch{op: 'test', path: '/data/key', value: 'value'}, "
                "JSONPatch{op: 'replace', path: '/data/key', value: 'y'}, "
                "JSONPatch{op: 'copy', from: '/data/key', path: '/data/copy'}, "
                "JSONPatch{op: 'move', from: '/data/key', path: '/data/moved'}]"
            ),
        ),
        ("tested", "[JSONPatch{op: 'test', path: '/data/key', value: 'no'}]"),
        (
            "escaped",
            (
                "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}, "
                "JSONPatch{op: 'add', path: '/metadata/annotations/' + "
                "jsonpatch.escapeKey('a.b/c'), value: 'd'}]"
            ),
        ),
        ("each", "object.data.map(k, JSONPatch{op: 'remove', path: '/data/' + k})"),
        (
            "whole",
            (
                "[JSONPatch{op: 'add', path: '/metadata/labels', value: "
                "Object.metadata.labels{a: 'b'}}]"
            ),
        ),
        ("none", "[1].filter(x, x > 1).map(x, JSONPatch{})"),
    ):
        it.mutating(patch(text), part=part, match={"objectSelector": _part(part)})
        it.config(part, {"key": "value"}, annotations={"part": part}, labels=_for(part))


def _for(part: str) -> JSON:
    return {"part": part}


def _part(part: str) -> JSON:
    return {"matchLabels": _for(part)}


def unpatched(it: Scenario) -> None:
    for part, text in (
        ("absent", "[JSONPatch{op: 'remove', path: '/data/nothing'}]"),
        ("place", "[JSONPatch{op: 'add', path: '/nowhere/at/all', value: 1}]"),
        ("operation", "[JSONPatch{op: 'grow', path: '/data/key', value: 'x'}]"),
        ("broken", "[JSONPatch{op: 'add', path: object.data.nothing, value: 1}]"),
        ("field", "[JSONPatch{op: 'add', path: '/spec', value: {'a': 1}}]"),
        ("list", "[JSONPatch{op: 'replace', path: '/data', value: [1]}]"),
        ("number", "[JSONPatch{op: 'replace', path: '/data/key', value: 1}]"),
        ("name", "[JSONPatch{op: 'replace', path: '/metadata/name', value: 'x'}]"),
        ("pointer", "[JSONPatch{op: 'add', path: 'data', value: 1}]"),
    ):
        it.mutating(patch(text), part=part, match={"objectSelector": _part(part)})
        it.config(part, {"key": "value"}, labels=_for(part))


def unapplied(it: Scenario) -> None:
    pod = "Object.spec.template.spec"
    deep = "Object{spec: Object.spec{template: Object.spec.template{spec: "
    for part, text in (
        ("whole", f"{deep}{pod}{{tolerations: []}}}}}}}}"),
        (
            "args",
            (
                f"{deep}{pod}{{containers: [{pod}.containers{{name: 'main', "
                "args: ['c']}]}}}}"
            ),
        ),
        ("unknown", "Object{spec: Object.spec{nothing: 1}}"),
        ("type", "Object{spec: Object.spec{replicas: 'many'}}"),
        ("named", "Object{spec: Object.wrong{replicas: 1}}"),
        ("list", f"{deep}{pod}{{containers: {pod}.containers{{name: 'x'}}}}}}}}}}"),
        ("key", f"{deep}{pod}{{containers: [{pod}.containers{{image: 'x'}}]}}}}}}}}"),
        ("selector", "Object{spec: Object.spec{selector: Object.spec.selector{}}}"),
        ("broken", "Object{spec: Object.spec{replicas: object.spec.nothing}}"),
        ("zero", "Object{spec: Object.spec{replicas: 1 / 0}}"),
    ):
        it.mutating(
            apply(text),
            part=part,
            rules=[rule("deployments", apiGroups=["apps"])],
            match={"objectSelector": _part(part)},
        )
        body = _deployment(part)
        body["metadata"]["labels"] = _for(part)
        it.create(body, "deployments", APPS)


def lenient(it: Scenario) -> None:
    it.mutating(
        apply("Object{data: {'first': 'x'}}"),
        apply("Object{data: {'second': object.data.nothing}}"),
        apply("Object{data: {'third': 'z'}}"),
        failurePolicy="Ignore",
        matchConditions=[{"name": "it", "expression": f"{NAME} == 'one'"}],
    )
    it.config("one")
    it.config("two")


def composed(it: Scenario) -> None:
    it.make(it.path(), config("params", {"team": "blue"}))
    it.mutating(
        apply("Object{metadata: Object.metadata{labels: variables.labels}}"),
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        variables=[
            {"name": "team", "expression": "params.data.team"},
            {
                "name": "labels",
                "expression": "{'team': string(variables.team), 'for': "
                "namespaceObject.metadata.labels['for'], 'how': request.operation}",
            },
        ],
        binding={"paramRef": {"name": "params", "parameterNotFoundAction": "Deny"}},
    )
    it.config("one")


def repeated(it: Scenario) -> None:
    """Whichever comes first, the one that wants to be asked again sees the other."""
    seen = "has(object.data) && 'b' in object.data"
    it.mutating(
        apply(f"{seen} ? Object{{data: {{'saw': 'yes'}}}} : Object{{}}"),
        part="watching",
        reinvocationPolicy="IfNeeded",
    )
    it.mutating(apply("Object{data: {'b': 'yes'}}"), part="writing")
    it.config("one")


def things(it: Scenario) -> None:
    group = "changes.example.com"
    it.make(CRDS, definition("Thing", "things", group, "Namespaced"))
    it.mutating(
        apply("Object{spec: Object.spec{name: 'set', tags: ['b', 'c']}}"),
        patch("[JSONPatch{op: 'replace', path: '/spec/name', value: 'patched'}]"),
        rules=[rule("things", apiGroups=[group])],
    )
    body = {
        "apiVersion": f"{group}/v1",
        "kind": "Thing",
        "metadata": {"name": "one"},
        "spec": {"tags": ["a", "b"]},
    }
    it.create(body, "things", f"/apis/{group}/v1")


def together(it: Scenario) -> None:
    """What a policy makes, another looks at."""
    it.mutating(apply("Object{data: {'made': object.metadata.name}}"))
    it.validating(
        check("object.data.made != 'bad'", messageExpression="string(object.data.made)")
    )
    it.config("bad")
    it.config("good")
