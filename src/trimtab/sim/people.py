"""People: the clients who make, edit and delete objects, and a human who meddles.

They act on the server itself, so what they do never fails half-way, and it is the same
in a run where things go wrong and in one where nothing does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, Final

from trimtab.api.crd import crd
from trimtab.api.resource import Resource
from trimtab.api.selectors import Selector
from trimtab.runtime.definitions import OPERATOR_LABEL
from trimtab.sim.fields import owned
from trimtab.sim.plan import Act
from trimtab.sim.samples import sample
from trimtab.sim.scenario import (
    BadScenario,
    Scenario,
    is_builtin,
    path_of,
    resource_of,
)
from trimtab.sim.server import MERGE, Plain, Server
from trimtab.sim.trace import Trace

TRIES: Final = 20
DEFAULT: Final = "default"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CREATED, CONFLICT = 201, 409


class People:
    """Everybody who is not the operator."""

    def __init__(self, scenario: Scenario, server: Server, trace: Trace) -> None:
        self._scenario = scenario
        self._server = server
        self._trace = trace
        self._scopes = {each.kind: each.primary.scope for each in scenario.definitions}

    def prepare(self) -> None:
        """Install every kind that the operator needs, and its namespaces."""
        kinds: dict[type[Resource], None] = {}
        places = dict.fromkeys(self._scenario.namespaces)
        for definition in self._scenario.definitions:
            for source in definition.sources:
                kinds[source.kind] = None
                places.update(dict.fromkeys(source.scope.namespaces))
        for namespace in places:
            body = {"metadata": {"name": namespace}}
            self._server.ask("POST", "/api/v1/namespaces", body)
        for kind in (*kinds, *self._scenario.made, *self._scenario.installs):
            if not is_builtin(kind):
                status, answer = self._server.ask("POST", CRDS, crd(kind))
                if status not in (CREATED, CONFLICT):
                    raise BadScenario(f"{kind.__name__}: {answer.get('message')}")
        while self._server.api.work():
            pass

    def act(self, act: Act) -> None:
        """Do one thing of the plan."""
        kind = self._scenario.made[act.target % len(self._scenario.made)]
        name = f"{kind.kind.lower()}-{act.target}"
        match act.kind:
            case "create":
                self._create(kind, name, act.seed)
            case "edit":
                self._edit(kind, name, act.seed)
            case "touch":
                labels = {"touched": str(act.seed % 97)}
                self._patch(kind, name, {"metadata": {"labels": labels}})
            case "delete":
                self.delete(kind, name)
            case "meddle":
                self._meddle(kind, name, act.seed)
            case "scribble":
                self._scribble(kind, name, act.seed)
            case "stranger":
                self._stranger(act.target, act.seed)

    def _create(self, kind: type[Resource], name: str, seed: int) -> None:
        answer: Plain = {}
        for attempt in range(TRIES):
            body = self._body(kind, name, Random(f"{seed} {attempt}"))
            path = path_of(kind, body["metadata"].get("namespace", ""))
            status, answer = self._server.ask("POST", path, body)
            if status in (CREATED, CONFLICT):
                self._trace.say("people", f"create {kind.kind} {name}")
                return
        raise BadScenario(
            f"The server refuses every {kind.__name__} that was made up: "
            f"{answer.get('message')}; give the scenario a sample that it takes."
        )

    def _body(self, kind: type[Resource], name: str, random: Random) -> Plain:
        made = self._scenario.samples.get(kind)
        body = sample(kind, random) if made is None else dict(made(random))
        info, scope = kind.__resource__, self._scopes.get(kind)
        metadata = dict(body.get("metadata", {}), name=name)
        if info.namespaced:
            metadata["namespace"] = self._place(kind)
        if scope is not None and scope.labels:
            metadata.setdefault("labels", {}).update(_labels(scope.labels))
        return {
            **body,
            "apiVersion": info.api_version,
            "kind": info.kind,
            "metadata": metadata,
        }

    def _place(self, kind: type[Resource]) -> str:
        scope = self._scopes.get(kind)
        if not kind.__resource__.namespaced:
            return ""
        return scope.namespaces[0] if scope and scope.namespaces else DEFAULT

    def _found(self, kind: type[Resource], name: str) -> Plain | None:
        parts = (resource_of(kind), self._place(kind), name)
        return self._server.objects.get("/".join(filter(None, parts)))

    def _edit(self, kind: type[Resource], name: str, seed: int) -> None:
        body = self._body(kind, name, Random(f"{seed} edit"))
        for field in ("apiVersion", "kind", "metadata", "status"):
            body.pop(field, None)
        self._patch(kind, name, body)

    def _patch(self, kind: type[Resource], name: str, body: Plain) -> None:
        found = self._found(kind, name)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return
        path = path_of(kind, self._place(kind), name)
        status, _ = self._server.ask("PATCH", path, body, media=MERGE)
        self._trace.say("people", f"edit {kind.kind} {name}: {status}")

    def delete(self, kind: type[Resource], name: str) -> None:
        path = path_of(kind, self._place(kind), name)
        query = {"propagationPolicy": "Background"}
        status, _ = self._server.ask("DELETE", path, query=query)
        self._trace.say("people", f"delete {kind.kind} {name}: {status}")

    def delete_all(self) -> None:
        """The end of everything that people made."""
        for kind in self._scenario.made:
            for obj in self._server.of(resource_of(kind)):
                if "deletionTimestamp" not in obj["metadata"]:
                    self.delete(kind, obj["metadata"]["name"])

    def _meddle(self, kind: type[Resource], name: str, seed: int) -> None:
        """Delete a child by hand."""
        child = self._child(kind, name, seed)
        if child is not None:
            path = _path(child, self._server)
            status, _ = self._server.ask("DELETE", path, who="human")
            what = f"{child['kind']} {child['metadata']['name']}"
            self._trace.say("human", f"delete {what} by hand: {status}")

    def _scribble(self, kind: type[Resource], name: str, seed: int) -> None:
        """Change by hand what the operator wrote into a child."""
        child = self._child(kind, name, seed)
        places = list(_leaves(child or {}, ("data", "spec")))
        if child is None or not places:
            return
        *parts, value = Random(seed).choice(places)
        patch: Any = value + 1 if isinstance(value, int) else "scribbled"
        for part in reversed(parts):
            patch = {part: patch}
        path = _path(child, self._server)
        query = {"fieldManager": "human"}
        status, _ = self._server.ask(
            "PATCH", path, patch, who="human", media=MERGE, query=query
        )
        what = f"{child['kind']} {child['metadata']['name']}: {'.'.join(parts)}"
        self._trace.say("human", f"scribble on {what}: {status}")

    def _child(self, kind: type[Resource], name: str, seed: int) -> Plain | None:
        owner = self._found(kind, name)
        children = self._children(owner["metadata"]["uid"]) if owner else []
        return Random(seed).choice(children) if children else None

    def _children(self, uid: str) -> list[Plain]:
        """What the operator made for an object."""
        return [
            obj
            for _, obj in sorted(self._server.objects.items())
            if obj["metadata"].get("labels", {}).get(OPERATOR_LABEL)
            and any(
                each["uid"] == uid
                for each in obj["metadata"].get("ownerReferences", ())
            )
        ]

    def _stranger(self, target: int, seed: int) -> None:
        """Something of a kind that the operator owns, and not the operator's."""
        name = f"stranger-{target}-{seed % 97}"
        for definition in self._scenario.definitions:
            for source in definition.owns:
                body = _foreign_body(source.kind)
                if body is not None:
                    body["metadata"] = {"name": name, "namespace": DEFAULT}
                    self._server.ask("POST", path_of(source.kind, DEFAULT), body)


def _leaves(obj: Plain, roots: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """Where an operator wrote a text or a number: the path, and what is there."""
    for each in obj.get("metadata", {}).get("managedFields", ()):
        if each.get("operation") != "Apply":
            continue
        part = owned(obj, each.get("fieldsV1", {}))
        for root in roots:
            yield from _below(part.get(root), (root,))


def _below(value: Any, path: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _below(each, (*path, name))
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield (*path, value)


def _foreign_body(kind: type[Resource]) -> Plain | None:
    info = kind.__resource__
    head = {"apiVersion": info.api_version, "kind": info.kind}
    match info.kind:
        case "ConfigMap" | "Secret":
            return {**head}
        case "Deployment":
            labels = {"app": "stranger"}
            pod = {"containers": [{"name": "main", "image": "stranger:1"}]}
            template = {"metadata": {"labels": labels}, "spec": pod}
            selector = {"matchLabels": labels}
            return {
                **head,
                "spec": {"replicas": 0, "selector": selector, "template": template},
            }
    return None


def _labels(selector: str) -> dict[str, str]:
    """Labels that a selector chooses."""
    return {
        each.key: each.values[0] if each.values else ""
        for each in Selector.from_string(selector).requirements
        if each.operator not in ("!", "!=", "notin")
    }


def _path(obj: Plain, server: Server) -> str:
    group, _, version = obj["apiVersion"].rpartition("/")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    resource = next(
        key.split("/")[1] for key, each in server.objects.items() if each is obj
    )
    namespace = obj["metadata"].get("namespace")
    place = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{place}/{resource}/{obj['metadata']['name']}"
